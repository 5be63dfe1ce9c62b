"""What a run tells its tracers: chains for LangChain's callbacks, spans for OpenTelemetry."""
