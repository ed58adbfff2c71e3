from __future__ import annotations

from config import audit

PACKAGES = [
    {"name": "fine", "version": "1.0", "vulns": []},
    {"name": "private", "skip_reason": "not found"},
    {
        "name": "leaky",
        "version": "2.0",
        "vulns": [
            {"id": "PYSEC-2026-1", "fix_versions": ["2.1", "3.0"]},
            {"id": "PYSEC-2026-2", "fix_versions": []},
        ],
    },
]


def test_each_vulnerability_is_named_with_its_remedy():
    lines, known, unknown = audit.report(PACKAGES)
    assert lines == [
        "leaky==2.0: PYSEC-2026-1, fixed in 2.1, 3.0",
        "leaky==2.0: PYSEC-2026-2, fixed in no version yet",
    ]
    assert (known, unknown) == (2, 1)


def test_a_vulnerable_pin_fails_the_check(monkeypatch, capsys):
    monkeypatch.setattr(audit, "ask", lambda requirements: PACKAGES)
    assert audit.main() == 1
    assert "2 known vulnerabilities in 2 pins, 1 of which" in capsys.readouterr().out


def test_an_index_that_does_not_answer_is_told_and_fails_nothing(monkeypatch, capsys):
    # Nothing listens on port 9: the real program, without a network.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert audit.main() == 0
    assert capsys.readouterr().out.startswith("audit: skipped: ")


def test_an_index_without_knowledge_is_told_and_fails_nothing(monkeypatch, capsys):
    unknown = [{"name": "fine", "skip_reason": "not found"}]
    monkeypatch.setattr(audit, "ask", lambda requirements: unknown)
    assert audit.main() == 0
    assert "skipped" in capsys.readouterr().out
