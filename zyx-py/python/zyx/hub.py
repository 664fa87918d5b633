"""Files of weights under the names of `torch.hub`: nothing is downloaded or executed; a file that is there is loaded."""

import os


def get_dir():
    """The folder in which PyTorch keeps files of its hub."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch")
    return os.path.join(home, "hub")


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False):
    """The weights of a file in `model_dir` (by default the hub's folder), where PyTorch or the user has put it."""
    from ._save import load

    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or url.rpartition("/")[2])
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: nothing is downloaded; fetch {url} to there")
    return load(path, map_location)


def load(repo_or_dir, model, *args, **kwargs):
    """An error: programs of other people are not fetched and executed."""
    raise NotImplementedError(f"hub.load: {repo_or_dir!r} would be a program to fetch and execute; import it, and load its weights by zyx.load(file)")
