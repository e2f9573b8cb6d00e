"""Names of workloads and devices as file names."""

import pytest

from pfprofile.profile.places import device_slug, workload_slug


@pytest.mark.parametrize(
    ("workload", "slug"),
    [
        ("train.py:Net", "train.py-Net"),
        ("a b/c", "a-b-c"),
        ("模型:甲", "模型-甲"),
        ("..", "workload"),
        ("naïve", "naïve"),
    ],
)
def test_a_workload_is_a_file_name_and_two_scripts_do_not_collide(workload, slug):
    assert workload_slug(workload) == slug


def test_a_device_loses_its_maker():
    assert device_slug("NVIDIA A100-SXM4") == "a100-sxm4"
