"""Adversarial networks with a gradient penalty, Q learning, a variational autoencoder, language models, as users write them. A program of PyTorch: `test_pytorch_scripts.py` changes its imports."""

import sys
import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim, copy, math, random, collections
from collections import OrderedDict, deque
from torch.nn import Sequential, Linear, LSTM
from torch.optim import Adam, lr_scheduler
import torch.utils.data as data
def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Conv') != -1: nn.init.normal_(m.weight, 0.0, 0.02)
    elif classname.find('BatchNorm') != -1: nn.init.normal_(m.weight, 1.0, 0.02); nn.init.zeros_(m.bias)
class G(nn.Module):
    def __init__(s, ngpu=1):
        super().__init__(); s.ngpu=ngpu
        s.main=nn.Sequential(nn.ConvTranspose2d(10,8,4,1,0,bias=False),nn.BatchNorm2d(8),nn.ReLU(True),nn.ConvTranspose2d(8,3,4,2,1,bias=False),nn.Tanh())
    def forward(s,x):
        if x.is_cuda and s.ngpu>1: return nn.parallel.data_parallel(s.main,x,range(s.ngpu))
        return s.main(x)
class D(nn.Module):
    def __init__(s):
        super().__init__(); s.main=nn.Sequential(nn.utils.spectral_norm(nn.Conv2d(3,8,4,2,1,bias=False)),nn.LeakyReLU(0.2,inplace=True),nn.Conv2d(8,1,4,1,0),nn.Flatten(),nn.Sigmoid())
    def forward(s,x): return s.main(x).view(-1,1).squeeze(1)
g,d=G(),D(); g.apply(weights_init); d.apply(weights_init)
crit=nn.BCELoss(); og=Adam(g.parameters(),lr=2e-4,betas=(0.5,0.999)); od=Adam(d.parameters(),lr=2e-4,betas=(0.5,0.999))
for i in range(3):
    d.zero_grad(); real=torch.randn(4,3,8,8); label=torch.full((4,),1.,dtype=torch.float)
    e=crit(d(real),label); e.backward(); label.fill_(0.); fake=g(torch.randn(4,10,1,1)); l2=torch.full((4,),0.); e2=crit(d(fake.detach()),l2); e2.backward(); od.step()
    g.zero_grad(); label.fill_(1.); eg=crit(d(fake),label); eg.backward(); og.step()
print('gan', e.item(), eg.item())
# gradient penalty
alpha=torch.rand(4,1,1,1); inter=(alpha*real+(1-alpha)*fake.detach()).requires_grad_(True); out=d(inter)
gr=torch.autograd.grad(outputs=out,inputs=inter,grad_outputs=torch.ones_like(out),create_graph=True,retain_graph=True,only_inputs=True)[0]
gp=((gr.view(4,-1).norm(2,dim=1)-1)**2).mean(); gp.backward(); print('gp',gp.item())
# DQN
net=nn.Sequential(OrderedDict([('fc1',Linear(4,16)),('act',nn.ReLU()),('fc2',Linear(16,2))])); target=copy.deepcopy(net); target.load_state_dict(net.state_dict()); target.eval()
mem=deque(maxlen=100)
for _ in range(32): mem.append((torch.randn(4),random.randrange(2),random.random(),torch.randn(4)))
b=random.sample(mem,16); s,a,r,ns=zip(*b); s=torch.stack(s); a=torch.tensor(a).unsqueeze(1); r=torch.tensor(r); ns=torch.stack(ns)
opt=optim.RMSprop(net.parameters(),lr=1e-2)
q=net(s).gather(1,a).squeeze(); y=r+0.9*target(ns).max(1)[0].detach(); loss=F.smooth_l1_loss(q,y); opt.zero_grad(); loss.backward()
for p in net.parameters(): p.grad.data.clamp_(-1,1)
opt.step(); print('dqn',loss.item())
for tp,p in zip(target.parameters(),net.parameters()): tp.data.copy_(0.9*tp.data+0.1*p.data)
# VAE
class VAE(nn.Module):
    def __init__(s):
        super(VAE,s).__init__(); s.fc1=nn.Linear(20,8); s.fc21=nn.Linear(8,2); s.fc22=nn.Linear(8,2); s.fc3=nn.Linear(2,8); s.fc4=nn.Linear(8,20)
    def encode(s,x): h=F.relu(s.fc1(x)); return s.fc21(h),s.fc22(h)
    def reparameterize(s,mu,logvar): std=torch.exp(0.5*logvar); eps=torch.randn_like(std); return mu+eps*std
    def forward(s,x): mu,lv=s.encode(x.view(-1,20)); z=s.reparameterize(mu,lv); return torch.sigmoid(s.fc4(F.relu(s.fc3(z)))),mu,lv
v=VAE(); o=optim.Adam(v.parameters(),lr=1e-3); x=torch.rand(8,1,4,5); rec,mu,lv=v(x)
BCE=F.binary_cross_entropy(rec,x.view(-1,20),reduction='sum'); KLD=-0.5*torch.sum(1+lv-mu.pow(2)-lv.exp()); (BCE+KLD).backward(); o.step(); print('vae',(BCE+KLD).item())
# word lm
class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__(); self.ntoken=ntoken; self.drop=nn.Dropout(dropout); self.encoder=nn.Embedding(ntoken,ninp)
        self.rnn=getattr(nn,rnn_type)(ninp,nhid,nlayers,dropout=dropout); self.decoder=nn.Linear(nhid,ntoken)
        if tie_weights: self.decoder.weight=self.encoder.weight
        nn.init.uniform_(self.encoder.weight,-0.1,0.1); nn.init.zeros_(self.decoder.bias); self.nhid=nhid; self.nlayers=nlayers; self.rnn_type=rnn_type
    def forward(self,input,hidden):
        emb=self.drop(self.encoder(input)); output,hidden=self.rnn(emb,hidden); dec=self.decoder(self.drop(output)).view(-1,self.ntoken); return F.log_softmax(dec,dim=1),hidden
    def init_hidden(self,bsz):
        weight=next(self.parameters()); h=weight.new_zeros(self.nlayers,bsz,self.nhid); return (h,weight.new_zeros(self.nlayers,bsz,self.nhid)) if self.rnn_type=='LSTM' else h
for t in ('LSTM','GRU'):
    m=RNNModel(t,11,8,8,2,tie_weights=True); h=m.init_hidden(3); xx=torch.randint(11,(5,3)); out,h=m(xx,h); l=nn.NLLLoss()(out,xx.view(-1)); l.backward(); torch.nn.utils.clip_grad_norm_(m.parameters(),0.25); print(t,l.item()); h=tuple(v.detach() for v in h) if isinstance(h,tuple) else h.detach(); m.rnn.flatten_parameters()
class Pos(nn.Module):
    def __init__(self,d,dropout=0.1,max_len=50):
        super().__init__(); self.dropout=nn.Dropout(p=dropout); position=torch.arange(max_len).unsqueeze(1); div=torch.exp(torch.arange(0,d,2)*(-math.log(10000.0)/d))
        pe=torch.zeros(max_len,1,d); pe[:,0,0::2]=torch.sin(position*div); pe[:,0,1::2]=torch.cos(position*div); self.register_buffer('pe',pe)
    def forward(self,x): return self.dropout(x+self.pe[:x.size(0)])
class TM(nn.Module):
    def __init__(self):
        super().__init__(); self.pos=Pos(8); self.enc=nn.TransformerEncoder(nn.TransformerEncoderLayer(8,2,16,0.1),2); self.emb=nn.Embedding(11,8); self.dec=nn.Linear(8,11); self.src_mask=None
    def forward(self,src):
        if self.src_mask is None or self.src_mask.size(0)!=len(src): self.src_mask=torch.log(torch.tril(torch.ones(len(src),len(src)))).to(src.device)
        return self.dec(self.enc(self.pos(self.emb(src)*math.sqrt(8)),mask=self.src_mask))
tm=TM(); print('tm', tm(xx).shape, [n for n,_ in tm.named_buffers()]); F.cross_entropy(tm(xx).view(-1,11),xx.view(-1)).backward()
ms=optim.lr_scheduler.OneCycleLR(optim.AdamW(tm.parameters(),lr=1e-3),max_lr=0.01,steps_per_epoch=2,epochs=2)
no_decay=['bias','norm']; groups=[{'params':[p for n,p in tm.named_parameters() if not any(k in n for k in no_decay)],'weight_decay':0.1},{'params':[p for n,p in tm.named_parameters() if any(k in n for k in no_decay)],'weight_decay':0.0}]
oo=optim.AdamW(groups,lr=1e-3,fused=False); oo.step(); print(len(oo.param_groups), oo)
sched=optim.lr_scheduler.LambdaLR(oo,lambda s:min(1,s/10)); torch.save({'m':tm.state_dict(),'o':oo.state_dict(),'s':sched.state_dict(),'epoch':3},sys.argv[0] + '.checkpoint'); ck=torch.load(sys.argv[0] + '.checkpoint',map_location=torch.device('cpu')); oo.load_state_dict(ck['o']); tm.load_state_dict(ck['m']); sched.load_state_dict(ck['s'])
for n,p in tm.named_parameters():
    if 'emb' in n: p.requires_grad=False
print(sum(p.requires_grad for p in tm.parameters()), tm.emb.weight.requires_grad)
fe=nn.Sequential(*list(net.children())[:-1]); print(fe(torch.ones(1,4)).shape)
net.fc2=nn.Linear(net.fc2.in_features,7); print(net(torch.ones(1,4)).shape, net)
