"""The models that the benchmarks trace and export, as bench/models.h has them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH, HEADS, VOCABULARY, POSITIONS = 768, 12, 50257, 1024


def split_heads(x):
    return x.view(x.size(0), x.size(1), HEADS, WIDTH // HEADS).transpose(1, 2)


def join_heads(x):
    y = x.transpose(1, 2).contiguous()
    return y.view(y.size(0), y.size(1), WIDTH)


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.mlp_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).split(WIDTH, 2)
        a = F.scaled_dot_product_attention(split_heads(q), split_heads(k), split_heads(v), is_causal=True)
        y = x + self.c_proj(join_heads(a))
        return y + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(y)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.h = nn.ModuleList(DecoderLayer() for _ in range(layers))
        self.ln_f = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.size(1)))
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.dense = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.intermediate, self.output = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        a = F.scaled_dot_product_attention(split_heads(self.query(x)), split_heads(self.key(x)), split_heads(self.value(x)))
        y = self.norm_1(x + self.dense(join_heads(a)))
        return self.norm_2(y + self.output(F.gelu(self.intermediate(y))))


class Encoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(POSITIONS, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layer = nn.ModuleList(EncoderLayer() for _ in range(layers))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.size(1))) + self.kinds(torch.zeros_like(ids)))
        for layer in self.layer:
            x = layer(x)
        return torch.tanh(self.pooler(x.select(1, 0)))


LLAMA_WIDTH, LLAMA_HEADS, LLAMA_GROUPS, LLAMA_INNER, LLAMA_VOCABULARY = 1024, 16, 4, 2816, 32000
LLAMA_HEAD = LLAMA_WIDTH // LLAMA_HEADS


def rotate_half(x):
    return torch.cat([-x[..., LLAMA_HEAD // 2:], x[..., :LLAMA_HEAD // 2]], -1)


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_norm, self.post_norm = nn.RMSNorm(LLAMA_WIDTH), nn.RMSNorm(LLAMA_WIDTH)
        self.q_proj, self.o_proj = (nn.Linear(LLAMA_WIDTH, LLAMA_WIDTH, False) for _ in range(2))
        self.k_proj, self.v_proj = (nn.Linear(LLAMA_WIDTH, LLAMA_GROUPS * LLAMA_HEAD, False) for _ in range(2))
        self.gate_proj, self.up_proj = (nn.Linear(LLAMA_WIDTH, LLAMA_INNER, False) for _ in range(2))
        self.down_proj = nn.Linear(LLAMA_INNER, LLAMA_WIDTH, False)

    @staticmethod
    def split(x, heads):
        return x.view(x.size(0), x.size(1), heads, LLAMA_HEAD).transpose(1, 2)

    @staticmethod
    def repeat(x):
        b, n = x.size(0), x.size(2)
        return x.unsqueeze(2).expand(b, LLAMA_GROUPS, LLAMA_HEADS // LLAMA_GROUPS, n, LLAMA_HEAD).reshape(b, LLAMA_HEADS, n, LLAMA_HEAD)

    def forward(self, x, cosine, sine):
        h = self.input_norm(x)
        q, k, v = self.split(self.q_proj(h), LLAMA_HEADS), self.split(self.k_proj(h), LLAMA_GROUPS), self.split(self.v_proj(h), LLAMA_GROUPS)
        q = q * cosine + rotate_half(q) * sine
        k = k * cosine + rotate_half(k) * sine
        a = F.scaled_dot_product_attention(q, self.repeat(k), self.repeat(v), is_causal=True).transpose(1, 2).contiguous()
        y = x + self.o_proj(a.view(a.size(0), a.size(1), LLAMA_WIDTH))
        n = self.post_norm(y)
        return y + self.down_proj(F.silu(self.gate_proj(n)) * self.up_proj(n))


class Llama(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed = nn.Embedding(LLAMA_VOCABULARY, LLAMA_WIDTH)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(layers))
        self.norm = nn.RMSNorm(LLAMA_WIDTH)
        self.register_buffer("frequencies", 10000.0 ** (torch.arange(0, LLAMA_HEAD, 2).float() / -LLAMA_HEAD), persistent=False)

    def forward(self, ids):
        x = self.embed(ids)
        angles = torch.arange(ids.size(1)).unsqueeze(-1) * self.frequencies
        both = torch.cat([angles, angles], -1)
        cosine, sine = both.cos(), both.sin()
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return F.linear(self.norm(x), self.embed.weight)


MODELS = {"decoder": Decoder, "encoder": Encoder, "llama": Llama}
