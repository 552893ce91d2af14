"""Which role each method needs. A method that is not listed needs `admin`, so a forgotten one is closed, not open."""

from __future__ import annotations

from collections.abc import Mapping

from retrieval.settings.service import Role

HEALTH = "/grpc.health.v1.Health/"
REFLECTION = "/grpc.reflection."

ROLES: Mapping[str, Role] = {
    "/headrace.v1.RetrievalService/Retrieve": "read",
    "/headrace.v1.RetrievalService/Generate": "read",
    "/headrace.v1.RetrievalService/ReportAnswer": "read",
    "/headrace.v1.RetrievalService/ExplainRoute": "read",
    "/headrace.v1.EncodingService/Embed": "read",
    "/headrace.v1.EncodingService/Rerank": "read",
    "/headrace.v1.EncodingService/CountTokens": "read",
    "/headrace.v1.IndexService/CreateCollection": "write",
    "/headrace.v1.IndexService/GetCollection": "read",
    "/headrace.v1.IndexService/ListCollections": "read",
    "/headrace.v1.IndexService/UpdateCollection": "write",
    "/headrace.v1.IndexService/DeleteCollection": "write",
    "/headrace.v1.IndexService/UpsertDocuments": "write",
    "/headrace.v1.IndexService/ImportDocuments": "write",
    "/headrace.v1.IndexService/DeleteDocuments": "write",
    "/headrace.v1.IndexService/GetDocument": "read",
    "/headrace.v1.IndexService/ListDocuments": "read",
    "/headrace.v1.IndexService/CountDocuments": "read",
    "/headrace.v1.IndexService/LookUpDocuments": "write",
    "/headrace.v1.IndexService/SubmitJob": "write",
    "/headrace.v1.IndexService/GetJob": "read",
    "/headrace.v1.IndexService/ListJobs": "read",
    "/headrace.v1.IndexService/WatchJob": "read",
    "/headrace.v1.IndexService/CancelJob": "write",
    "/headrace.v1.IndexService/RetryFailures": "write",
    "/headrace.v1.IndexService/ListFailures": "read",
    "/headrace.v1.IndexService/DeleteJob": "write",
    "/headrace.v1.IndexService/BuildCollection": "write",
    "/headrace.v1.IndexService/MigrateCollection": "admin",
    "/headrace.v1.IndexService/GetMigration": "read",
    "/headrace.v1.IndexService/CancelMigration": "admin",
    "/headrace.v1.IndexService/ForgetMigration": "admin",
    "/headrace.v1.AdminService/GetInfo": "read",
    "/headrace.v1.AdminService/ReloadConfig": "admin",
    "/headrace.v1.AdminService/GetCacheStats": "admin",
    "/headrace.v1.AdminService/InvalidateCache": "admin",
    "/headrace.v1.AdminService/ExplainCacheKey": "admin",
}


def role_of(method: str) -> Role | None:
    """Returns the role that a method needs; None when any known caller may call it."""
    return None if method.startswith(REFLECTION) else ROLES.get(method, "admin")


def is_public(method: str) -> bool:
    """Tells whether a method takes callers without a credential: health checks only."""
    return method.startswith(HEALTH)
