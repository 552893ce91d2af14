"""The risk of serving a stored answer to a similar question: a model that ranks, a certificate that decides."""

from retrieval.answers.risk.control import Judgement, RiskControl, RiskFigures

__all__ = ["Judgement", "RiskControl", "RiskFigures"]
