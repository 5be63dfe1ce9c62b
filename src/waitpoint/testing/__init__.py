"""What users and store authors test with."""
