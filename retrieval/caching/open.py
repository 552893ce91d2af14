"""Opens the caches as the settings say."""

from __future__ import annotations

from retrieval.answers.cache import AnswerCache
from retrieval.answers.remembering import LearnedFiles
from retrieval.answers.risks import Risks
from retrieval.answers.store import AnswerStore
from retrieval.caching import embeddings, pair_scores, result_codec, results, token_codes
from retrieval.caching.caches import Caches
from retrieval.caching.embeddings import CachedQuery
from retrieval.caching.encryption import TenantCipher
from retrieval.caching.memory import Memory
from retrieval.caching.redis.configured import naming_settings, redis_options
from retrieval.caching.redis.connecting import tls_context
from retrieval.caching.redis.tier import open_redis_tier
from retrieval.caching.s3fifo import S3Fifo
from retrieval.caching.shared import NoSharedTier, SharedTier
from retrieval.caching.tiered import Sharing, Tiered
from retrieval.conversation.summaries import Summaries
from retrieval.errors import ConfigError
from retrieval.live import LiveSettings
from retrieval.settings import Settings
from retrieval.settings.caching import CacheSettings, RedisSettings, key_bytes
from retrieval.types import Found


def open_shared_tier(settings: RedisSettings) -> SharedTier:
    """Returns the tier that processes share. Waits for no connection; without a URL there is none.

    Raises:
        ConfigError: the address or the keys cannot be used.
    """
    if not settings.url.get_secret_value():
        return NoSharedTier()
    with naming_settings():
        return open_redis_tier(redis_options(settings), _cipher(settings), settings.compress_above_bytes)


def check_sharing(settings: Settings) -> None:
    """Refuses to share search results of embedded collections.

    Raises:
        ConfigError: they would be shared: copies of one data folder go on from the same epoch with other documents.
    """
    if settings.cache.redis.share_results and settings.index.kind != "qdrant":
        raise ConfigError(("cache.redis.share_results: needs index.kind = qdrant; a data folder is of one process",))


def check_redis(settings: RedisSettings) -> None:
    """Refuses what `open_shared_tier` would refuse, and opens nothing.

    Raises:
        ConfigError: the address or the keys cannot be used.
    """
    if settings.url.get_secret_value():
        with naming_settings():
            options = redis_options(settings)
            if options.tls is not None:
                tls_context(options.tls)
        _cipher(settings)


def open_caches(live: LiveSettings, shared: SharedTier, learned: LearnedFiles | None = None) -> Caches:
    """Returns the caches, over a shared tier that its owner closes."""
    settings = live.current.cache
    tier = None if isinstance(shared, NoSharedTier) else shared
    risks = Risks(learned)
    return Caches(
        shared=shared,
        embeddings=_embeddings(settings, tier),
        token_codes=Tiered(S3Fifo("token_codes", settings.token_codes_bytes, token_codes.size_of)),
        pair_scores=_pair_scores(settings, tier),
        results=_results(settings, tier),
        answers=AnswerCache(
            AnswerStore(settings.answers.memory_bytes, risks.forget), risks, lambda: live.current.cache.answers, tier
        ),
        summaries=Summaries(),
    )


def _cipher(settings: RedisSettings) -> TenantCipher | None:
    if not settings.encryption_keys:
        return None
    theirs: dict[str, list[bytes]] = {}
    for key in settings.tenant_keys:
        theirs.setdefault(key.tenant, []).append(key_bytes(key.secret))
    return TenantCipher([key_bytes(secret) for secret in settings.encryption_keys], theirs)


def _embeddings(settings: CacheSettings, tier: SharedTier | None) -> embeddings.QueryEmbeddings:
    memory: Memory[CachedQuery] = S3Fifo("query_embeddings", settings.embeddings_bytes, embeddings.size_of)
    if tier is None:
        return Tiered(memory)
    return Tiered(memory, Sharing(tier, embeddings.encode, embeddings.decode, lambda: settings.redis.ttl_s))


def _pair_scores(settings: CacheSettings, tier: SharedTier | None) -> pair_scores.PairScores:
    memory: Memory[float] = S3Fifo("pair_scores", settings.pair_scores_bytes, pair_scores.size_of)
    if tier is None:
        return pair_scores.PairScores(Tiered(memory))
    sharing = Sharing(tier, pair_scores.encode, pair_scores.decode, lambda: settings.redis.ttl_s)
    return pair_scores.PairScores(Tiered(memory, sharing), tier)


def _results(settings: CacheSettings, tier: SharedTier | None) -> Tiered[Found]:
    memory: Memory[Found] = S3Fifo("results", settings.results_bytes, results.size_of)
    if tier is None or not settings.redis.share_results:
        return Tiered(memory)
    return Tiered(memory, Sharing(tier, result_codec.encode, result_codec.decode, lambda: settings.redis.ttl_s))
