"""What a team holds its traffic to: which findings are shown, what they weigh, and which of them count.

from amqpscope.policy import judge, load_policy

run = judge(["recorded/orders.pcap"], load_policy())
for judged in run.captures:
    for finding in judged.findings:
        print(judged.name, finding.packet, finding.rule, run.policy.counts(finding))
assert not run.fails
"""

from amqpscope.policy.config_finding import ConfigFinding, RunConclusion
from amqpscope.policy.judging import CaptureOutcome, CheckRun, Hearer, JudgedCapture, judge
from amqpscope.policy.policy import Given, Policy, load_policy

__all__ = [
    "CaptureOutcome",
    "CheckRun",
    "ConfigFinding",
    "Given",
    "Hearer",
    "JudgedCapture",
    "Policy",
    "RunConclusion",
    "judge",
    "load_policy",
]
