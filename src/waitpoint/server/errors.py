"""What an error is on the wire: one table from codes to status numbers, and the body that every error has."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from waitpoint.errors import WaitpointError
from waitpoint.hosting import encoding

# By the code of an error, or of the nearest class it derives from that is listed.
STATUS: dict[str, int] = {
    "waitpoint": 500,
    "usage": 422,
    "not_found": 404,
    "refused": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "too_large": 413,
    "too_many": 429,
    "conflict": 409,
    "store": 503,
    "invalid_update": 422,
    "recursion_limit": 422,
    "call_limit": 422,
    "replay_mismatch": 409,
    "question_withdrawn": 409,
    "step_in_doubt": 409,
    "sealed_attempt": 409,
    "node_failed": 500,
    "swallowed_interrupt": 500,
    "node_timeout": 504,
    "step_timeout": 504,
    "unknown_tag": 500,
}


def status_of(error: type[BaseException]) -> int:
    """Return the status number of an error's class."""
    for base in error.__mro__:
        status = STATUS.get(base.__dict__.get("code", ""))
        if status is not None:
            return status
    return 500


def body_of(error: WaitpointError) -> dict[str, Any]:
    """Return what the caller is told: the sentence, the code, and the facts that the error carries."""
    facts = {name: value for name, value in vars(error).items() if not name.startswith("_") and value not in (None, ())}
    shown = {name: value for name, value in facts.items() if isinstance(value, str | int | float | bool | tuple | list)}
    return {"detail": str(error), "code": error.code, **encoding.jsonable(shown)}


def install(app: FastAPI) -> None:
    """Have errors of ours leave the application as the table says."""

    @app.exception_handler(WaitpointError)
    async def of_ours(_: Request, error: WaitpointError) -> JSONResponse:
        return JSONResponse(body_of(error), status_of(type(error)))

    @app.exception_handler(ValidationError)
    async def misfit(_: Request, error: ValidationError) -> JSONResponse:
        told = [{"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]} for each in error.errors()]
        text = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the value'}: {each['msg']}" for each in told)
        return JSONResponse({"detail": f"{error.title} does not fit - {text}", "code": "misfit", "errors": told}, 422)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        told = [{"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]} for each in error.errors()]
        text = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in told)
        return JSONResponse({"detail": f"The request is malformed - {text}", "code": "malformed", "errors": told}, 422)

    @app.exception_handler(HTTPException)
    async def of_http(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"detail": error.detail}, error.status_code, headers=error.headers)
