from .batches import Batch as Batch, Layout as Layout, Reading as Reading
from .examples import read_examples as read_examples
from .outputs import read_matchings as read_matchings
