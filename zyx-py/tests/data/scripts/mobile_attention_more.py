"""A mobile network with frozen layers, attention, samplers, losses, second derivatives, averages, lazy layers, as users write them. A program of PyTorch: `test_pytorch_scripts.py` changes its imports."""

import sys
import torch, torch.nn as nn, torch.nn.functional as F
from torch import Tensor, optim
from torch.utils.data import *
from typing import Optional
torch.manual_seed(1)
# mixup, label smoothing, grad accumulation, EMA, freeze, param groups, plateau
class SE(nn.Module):
    def __init__(self, c, r=4): 
        super().__init__(); self.avg=nn.AdaptiveAvgPool2d((1,1)); self.fc=nn.Sequential(nn.Linear(c,c//r,bias=False),nn.ReLU(inplace=True),nn.Linear(c//r,c,bias=False),nn.Sigmoid())
    def forward(self,x): b,c,_,_=x.size(); y=self.avg(x).view(b,c); y=self.fc(y).view(b,c,1,1); return x*y.expand_as(x)
class InvRes(nn.Module):
    def __init__(self,i,o,s,e):
        super().__init__(); h=i*e; self.use=s==1 and i==o; layers=[]
        if e!=1: layers+= [nn.Conv2d(i,h,1,bias=False),nn.BatchNorm2d(h),nn.ReLU6(inplace=True)]
        layers+=[nn.Conv2d(h,h,3,s,1,groups=h,bias=False),nn.BatchNorm2d(h),nn.Hardswish(),SE(h),nn.Conv2d(h,o,1,bias=False),nn.BatchNorm2d(o,eps=1e-3,momentum=0.01)]
        self.conv=nn.Sequential(*layers)
    def forward(self,x): return x+self.conv(x) if self.use else self.conv(x)
net=nn.Sequential(nn.Conv2d(3,8,3,2,1),InvRes(8,8,1,2),InvRes(8,16,2,2),nn.AdaptiveAvgPool2d(1),nn.Flatten(),nn.Dropout(0.1),nn.Linear(16,4))
crit=nn.CrossEntropyLoss(label_smoothing=0.1, weight=torch.tensor([1.,2.,1.,1.])); opt=optim.AdamW([{'params':net[:-1].parameters()},{'params':net[-1].parameters(),'lr':1e-2}],lr=1e-3,weight_decay=1e-2)
plateau=optim.lr_scheduler.ReduceLROnPlateau(opt,'min',factor=0.5,patience=0)
x=torch.randn(8,3,16,16); y=torch.randint(0,4,(8,))
for it in range(4):
    lam=0.7; idx=torch.randperm(x.size(0)); out=net(lam*x+(1-lam)*x[idx]); loss=(lam*crit(out,y)+(1-lam)*crit(out,y[idx]))/2; loss.backward()
    if (it+1)%2==0: total=nn.utils.clip_grad_norm_(net.parameters(),max_norm=1.0); opt.step(); opt.zero_grad()
    plateau.step(loss.item())
print(loss.item(), float(total), [g['lr'] for g in opt.param_groups])
net.eval()
with torch.inference_mode(): print(net(x).softmax(-1).sum().item())
for name, child in net.named_children():
    if name in ('0','1'): 
        for p in child.parameters(): p.requires_grad_(False)
print(sum(p.numel() for p in filter(lambda p: p.requires_grad, net.parameters())))
for m in net.modules():
    if isinstance(m,(nn.BatchNorm2d,nn.modules.batchnorm._BatchNorm)): m.eval(); m.momentum=0.1; m.track_running_stats=True
# attention, gpt-like
class Block(nn.Module):
    def __init__(s,d,h): super().__init__(); s.ln1=nn.LayerNorm(d); s.attn=nn.MultiheadAttention(d,h,batch_first=True,dropout=0.0); s.ln2=nn.LayerNorm(d); s.mlp=nn.ModuleDict(dict(fc=nn.Linear(d,4*d),act=nn.GELU(approximate='tanh'),proj=nn.Linear(4*d,d)))
    def forward(s,x):
        T=x.size(1); mask=torch.triu(torch.ones(T,T,dtype=torch.bool,device=x.device),diagonal=1); h=s.ln1(x); a,w=s.attn(h,h,h,attn_mask=mask,need_weights=True); x=x+a; m=s.mlp; return x+m['proj'](m.act(m.fc(s.ln2(x)))), w
b=Block(16,4); o,w=b(torch.randn(2,5,16)); print(o.shape,w.shape,torch.allclose(w.sum(-1),torch.ones(2,5)))
# bert-ish tokens, bag, sampler
bag=nn.EmbeddingBag(20,8,mode='mean'); print(bag(torch.tensor([1,2,3,4]),torch.tensor([0,2])).shape)
ws=WeightedRandomSampler([0.1,0.9,0.5],5,generator=torch.Generator().manual_seed(0)); print(len(list(ws)))
dl=DataLoader(TensorDataset(torch.arange(10)),batch_sampler=BatchSampler(SequentialSampler(range(10)),4,False)); print([bb[0].tolist() for bb in dl])
def collate(batch): xs,ys=zip(*batch); return nn.utils.rnn.pad_sequence(xs,batch_first=True),torch.tensor(ys)
print([tuple(a.shape) for a,_ in DataLoader([(torch.ones(n),n) for n in (3,1,2,4)],2,collate_fn=collate)])
# siamese, triplet, cosine
t=nn.TripletMarginLoss(margin=1.0,p=2); a,p_,n=torch.randn(3,4),torch.randn(3,4),torch.randn(3,4); print(t(a,p_,n).dim(), F.cosine_similarity(a,p_).shape, nn.CosineEmbeddingLoss()(a,p_,torch.ones(3)).dim())
# unet bits
up=nn.Upsample(scale_factor=2,mode='bilinear',align_corners=True); u=up(torch.randn(1,2,4,4)); diff=9-u.size(2); print(F.pad(u,[diff//2,diff-diff//2,diff//2,diff-diff//2]).shape)
c=nn.ConvTranspose2d(2,2,2,stride=2); print(c(u).shape, nn.PixelShuffle(2)(torch.randn(1,4,3,3)).shape)
# second order, functional
w=torch.nn.Parameter(torch.ones(2)); l=(w**3).sum(); g,=torch.autograd.grad(l,w,create_graph=True); (g.sum()).backward(); print(w.grad.tolist())
print(torch.autograd.functional.jacobian(lambda z:z**2,torch.ones(2)).tolist(), torch.func.hessian(lambda z:(z**3).sum())(torch.ones(2)).tolist())
print(torch.finfo(torch.float32).min<0, torch.is_tensor(w), torch.iinfo(torch.int64).max, isinstance(w,torch.Tensor), torch.get_default_dtype())
ema=optim.swa_utils.AveragedModel(b,multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.99)); ema.update_parameters(b); print(len(list(ema.parameters())))
lazy=nn.Sequential(nn.LazyConv2d(4,3),nn.Flatten(),nn.LazyLinear(2)); print(lazy(torch.randn(2,3,6,6)).shape)
rnn=nn.GRU(4,5,num_layers=2,bidirectional=True,batch_first=True,dropout=0.1); o,h=rnn(torch.randn(3,6,4)); print(o.shape,h.shape,rnn._parameters.keys().__len__(), [n for n,_ in rnn.named_parameters()][:2])
handles=[m.register_forward_hook(lambda m,i,o: None) for m in net.modules() if isinstance(m,nn.Conv2d)]; [hh.remove() for hh in handles]
print(nn.init.calculate_gain('relu'), len(net.state_dict()), list(net.state_dict())[-2:])
torch.save(net,'whole.pt'); again=torch.load('whole.pt',weights_only=False); print(torch.equal(again(x),net(x)))
print(repr(nn.TransformerDecoderLayer(8,2))[:40], nn.MSELoss(reduction='none')(torch.ones(2),torch.zeros(2)).tolist())
