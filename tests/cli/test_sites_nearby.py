"""`isuit fit --nearby`: sites tell of one another, in a store whose fits can be derived again."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SITES = 30


@pytest.fixture
def files(tmp_path):
    """A cohort whose sites are the harder the further north they lie, and where they are."""
    rng = np.random.default_rng(6)
    where = np.column_stack([rng.uniform(44, 46, SITES), rng.uniform(6, 9, SITES)])
    rider, site = np.repeat(np.arange(80), 25), rng.integers(0, SITES, 2_000)
    metric, skill = rng.uniform(3, 35, 2_000), rng.standard_normal(80)
    difficulty = ((metric - 18) / 8) ** 2 - 1 + 1.2 * (where[site, 0] - 45)
    outcome = rng.random(2_000) < 1 / (1 + np.exp(-2 * (skill[rider] - difficulty)))
    table = {"rider": [f"p{k}" for k in rider], "metric": metric, "outcome": outcome, "site": [f"s{k}" for k in site]}
    pq.write_table(pa.table(table), tmp_path / "cohort.parquet")
    lines = [f"s{k},{lat},{lon}\n" for k, (lat, lon) in enumerate(where.tolist())]
    (tmp_path / "spots.csv").write_text("site,latitude,longitude\n" + "".join(lines))
    return tmp_path


def test_the_fit_is_recorded_shown_and_derived_again(files, isuit):
    plain = isuit("fit", "--cohort", "cohort.parquet", "--sites", "spots.csv", "--json").json
    near = isuit("fit", "--cohort", "cohort.parquet", "--sites", "spots.csv", "--nearby", "--json").json
    assert near["recorded"]
    assert near["fit_id"] != plain["fit_id"]
    assert near["cohort_hash"] == plain["cohort_hash"]
    found = isuit("show", near["fit_id"], "--json").json["diagnostics"]["nearby"]
    assert found["share"] > 0.3
    assert found["sites"] == SITES
    told = " ".join(isuit("show", near["fit_id"]).out.split())
    assert found["sentence"] in told
    again = isuit("rederive", near["fit_id"], "--json").json
    assert again["verdict"] == "identical"
    assert isuit("verify").code == 0


def test_without_coordinates_it_is_refused(files, isuit):
    refused = isuit("fit", "--cohort", "cohort.parquet", "--nearby")
    assert refused.code == 2
    assert "--sites" in refused.err
    assert not (files / "isuit-store").exists()


def test_from_python_it_is_the_same_fit(files, isuit):
    import isuit as library

    found = library.fit(files / "cohort.parquet", sites=files / "spots.csv", nearby=True)
    recorded = isuit("fit", "--cohort", "cohort.parquet", "--sites", "spots.csv", "--nearby", "--json").json
    assert found.fit_id == recorded["fit_id"]
