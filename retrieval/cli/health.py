"""`headrace health`: asks a server whether it serves, as a container's health check does; needs no API key."""

from __future__ import annotations

import asyncio

from retrieval.cli.connecting import server_address
from retrieval.cli.exits import NoServer, WorkFailed
from retrieval.cli.output import print_json, show
from retrieval.cli.session import CLIENT, Session, with_session

_PATIENCE_S = 5.0


@with_session(*CLIENT)
def health(session: Session) -> None:
    """Ask the server whether it serves; the exit code is 1 when it does not."""
    address = server_address(session)
    status = asyncio.run(serving_status(address))
    if session.json:
        print_json({"server": address, "status": status})
    else:
        show(f"{address}: {status}")
    if status != "serving":
        raise WorkFailed(f"the server at {address} does not serve; look at its log")


async def serving_status(address: str) -> str:
    """Returns `serving`, `not_serving` or `unknown`, as the server at the address says.

    Raises:
        NoServer: nothing answers there.
    """
    import grpc.aio
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=_PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            raise NoServer(address) from error
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)).lower()
