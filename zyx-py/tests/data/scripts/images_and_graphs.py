"""A residual network, loaders, schedules, hooks, packed sequences, a transformer and a graph layer, as users write them. A program of PyTorch: `test_pytorch_scripts.py` changes its imports."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset, Dataset, random_split, WeightedRandomSampler
from torch.optim.lr_scheduler import StepLR
from torch.nn.modules.utils import _pair
from torch.nn.utils.rnn import pad_sequence, pack_padded_sequence, pad_packed_sequence
from torch.autograd import Variable
import torch.nn.init as init
from torch.nn.parameter import Parameter
from torch.utils.checkpoint import checkpoint
from torch.func import functional_call, vmap, grad
import math
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True
torch.manual_seed(0)
class ResBlock(nn.Module):
    expansion: int = 1
    def __init__(self, c):
        super(ResBlock, self).__init__()
        self.conv1 = nn.Conv2d(c, c, 3, 1, 1, bias=False); self.bn1 = nn.BatchNorm2d(c)
        self.conv2 = nn.Conv2d(c, c, 3, padding=1, bias=False); self.bn2 = nn.BatchNorm2d(c)
        self.relu = nn.ReLU(inplace=True)
        for m in self.modules():
            if isinstance(m, nn.Conv2d): nn.init.kaiming_normal_(m.weight, mode='fan_out', nonlinearity='relu')
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)): nn.init.constant_(m.weight, 1); nn.init.constant_(m.bias, 0)
    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x))); out = self.bn2(self.conv2(out))
        return F.relu(out + x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.layers = nn.ModuleList([ResBlock(8) for _ in range(2)])
        self.pool = nn.AdaptiveAvgPool2d(1); self.fc = nn.Linear(8, 5)
    def forward(self, x):
        x = self.stem(x)
        for l in self.layers: x = l(x)
        return self.fc(torch.flatten(self.pool(x), 1))
model = Net().to(device)
print(model)
print(sum(p.numel() for p in model.parameters() if p.requires_grad))
ds = TensorDataset(torch.randn(64, 3, 8, 8), torch.randint(0, 5, (64,)))
tr, va = random_split(ds, [48, 16], generator=torch.Generator().manual_seed(42))
loader = DataLoader(tr, batch_size=16, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
sched = StepLR(opt, step_size=1, gamma=0.7)
crit = nn.CrossEntropyLoss().to(device)
feats = {}
h = model.fc.register_forward_hook(lambda m, i, o: feats.update(f=i[0].detach()))
for epoch in range(2):
    model.train(); run = 0.0
    for i, (data, target) in enumerate(loader):
        data, target = data.to(device, non_blocking=True), target.to(device)
        opt.zero_grad(set_to_none=True)
        loss = crit(model(data), target); loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step(); run += loss.item()
    sched.step()
    model.eval(); correct = 0
    with torch.no_grad():
        for d, t in DataLoader(va, 8):
            pred = model(d).argmax(dim=1, keepdim=True); correct += pred.eq(t.view_as(pred)).sum().item()
    print(epoch, run, correct, sched.get_last_lr(), feats['f'].shape)
h.remove()
print(opt.state_dict().keys().__len__(), opt.param_groups[0]['lr'])
# lstm packed
lens=[5,3,2]; seqs=[torch.randn(n,4) for n in lens]
p=pack_padded_sequence(pad_sequence(seqs,batch_first=True),torch.tensor(lens),batch_first=True,enforce_sorted=True)
out,(hn,cn)=nn.LSTM(4,6,batch_first=True,bidirectional=True)(p)
print(pad_packed_sequence(out,batch_first=True)[0].shape, hn.shape)
tr=nn.Transformer(d_model=16,nhead=4,num_encoder_layers=1,num_decoder_layers=1,dim_feedforward=32,batch_first=True)
print(tr.encoder.layers[0].self_attn.in_proj_weight.shape, tr(torch.rand(2,5,16),torch.rand(2,3,16),tgt_mask=nn.Transformer.generate_square_subsequent_mask(3)).shape)
# gat-like
class GraphConv(nn.Module):
    def __init__(self,i,o):
        super().__init__(); self.weight=Parameter(torch.FloatTensor(i,o)); self.bias=Parameter(torch.FloatTensor(o)); self.reset_parameters()
    def reset_parameters(self):
        stdv=1./math.sqrt(self.weight.size(1)); nn.init.uniform_(self.weight,-stdv,stdv); nn.init.uniform_(self.bias,-stdv,stdv)
    def forward(self,x,adj): return torch.mm(adj,torch.mm(x,self.weight))+self.bias
    def __repr__(self): return self.__class__.__name__
print(nn.Sequential(GraphConv(2,3)))
lin=nn.Linear(2,3); lin.reset_parameters()
print(lin.weight.data.shape, lin.extra_repr())
sd={k.replace('module.',''):v for k,v in nn.DataParallel(lin).state_dict().items()}; lin.load_state_dict(sd)
