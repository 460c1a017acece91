from .batches import Batch as Batch, Layout as Layout, Reading as Reading
from .examples import read_examples as read_examples
from .known import Known as Known, read_known as read_known
