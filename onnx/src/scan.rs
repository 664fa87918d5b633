//! The memory that decoding a model takes, before it is decoded.
//!
//! A message of two bytes is decoded to a struct of hundreds. The scan walks through the messages of a file, which takes a
//! part of the time of decoding them, and asks the budget for the structs.

use crate::budget::Budget;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, StringStringEntryProto,
    TensorProto, TypeProto, ValueInfoProto, tensor_shape_proto, type_proto,
};
use prost::bytes::Buf;
use prost::encoding::{WireType, decode_key, decode_varint};
use zyx_core::Result;

/// A kind of message: the bytes of its struct, and which of its fields are messages or texts of which kind.
struct Kind {
    bytes: usize,
    fields: &'static [(u32, usize)],
    /// Bytes of structs per byte of the message, where its fields are not listed.
    per_byte: usize,
}

const MODEL: usize = 0;
const GRAPH: usize = 1;
const NODE: usize = 2;
const ATTRIBUTE: usize = 3;
const TENSOR: usize = 4;
const PORT: usize = 5;
const FUNCTION: usize = 6;
const TYPE: usize = 7;
const TENSOR_TYPE: usize = 8;
const SHAPE: usize = 9;
const EXTENT: usize = 10;
const ENTRY: usize = 11;
const TEXT: usize = 12;
/// Sparse tensors, which are not supported.
const OTHER: usize = 13;

/// Bytes of the largest struct.
const fn largest() -> usize {
    let sizes = [size_of::<AttributeProto>(), size_of::<TensorProto>(), size_of::<GraphProto>()];
    let (mut most, mut i) = (0, 0);
    while i < sizes.len() {
        most = if sizes[i] > most { sizes[i] } else { most };
        i += 1;
    }
    most
}

const fn kind(bytes: usize, fields: &'static [(u32, usize)]) -> Kind {
    Kind { bytes, fields, per_byte: 0 }
}

/// By the numbers above.
static KINDS: [Kind; 14] = [
    kind(size_of::<ModelProto>(), &[(7, GRAPH), (8, ENTRY), (14, ENTRY), (25, FUNCTION)]),
    kind(
        size_of::<GraphProto>(),
        &[(1, NODE), (5, TENSOR), (11, PORT), (12, PORT), (13, PORT), (15, OTHER), (16, ENTRY)],
    ),
    kind(size_of::<NodeProto>(), &[(1, TEXT), (2, TEXT), (5, ATTRIBUTE), (9, ENTRY)]),
    kind(
        size_of::<AttributeProto>(),
        &[
            (5, TENSOR),
            (6, GRAPH),
            (9, TEXT),
            (10, TENSOR),
            (11, GRAPH),
            (14, TYPE),
            (15, TYPE),
            (22, OTHER),
            (23, OTHER),
        ],
    ),
    kind(size_of::<TensorProto>(), &[(6, TEXT), (13, ENTRY), (16, ENTRY)]),
    kind(size_of::<ValueInfoProto>(), &[(2, TYPE), (4, ENTRY)]),
    kind(
        size_of::<FunctionProto>(),
        &[
            (4, TEXT),
            (5, TEXT),
            (6, TEXT),
            (7, NODE),
            (9, ENTRY),
            (11, ATTRIBUTE),
            (12, PORT),
            (14, ENTRY),
        ],
    ),
    kind(
        size_of::<TypeProto>(),
        &[(1, TENSOR_TYPE), (4, TYPE), (5, TYPE), (8, TENSOR_TYPE), (9, TYPE)],
    ),
    kind(size_of::<type_proto::Tensor>(), &[(2, SHAPE)]),
    kind(0, &[(1, EXTENT)]),
    kind(size_of::<tensor_shape_proto::Dimension>(), &[]),
    kind(size_of::<StringStringEntryProto>(), &[]),
    kind(size_of::<prost::bytes::Bytes>(), &[]),
    Kind { bytes: largest(), fields: &[], per_byte: largest() / 2 },
];

/// Asks for what decoding a model takes. What is damaged is left to decoding.
pub(crate) fn ask(buf: &mut dyn Buf, budget: &Budget) -> Result<()> {
    let length = buf.remaining();
    // Two bytes become one struct at most, and lists of them grow to twice as many.
    if length.saturating_mul(largest()) <= budget.limit() {
        return Ok(());
    }
    walk(buf, MODEL, 0, 0, budget).map(drop)
}

/// Asks for a message that ends where `end` bytes remain; `None` if it is damaged.
fn walk(
    mut buf: &mut dyn Buf,
    kind: usize,
    end: usize,
    depth: usize,
    budget: &Budget,
) -> Result<Option<()>> {
    let Kind { bytes, fields, per_byte } = KINDS[kind];
    let own = buf.remaining().saturating_sub(end);
    budget.ask(own.saturating_mul(per_byte).saturating_add(2 * bytes))?;
    if fields.is_empty() {
        buf.advance(own);
        return Ok(Some(()));
    }
    // Decoding goes no deeper.
    if depth > 100 {
        return Ok(None);
    }
    while buf.remaining() > end {
        let Ok((tag, wire)) = decode_key(&mut buf) else { return Ok(None) };
        let length = match wire {
            WireType::Varint => decode_varint(&mut buf).map(|_| 0),
            WireType::ThirtyTwoBit => Ok(4),
            WireType::SixtyFourBit => Ok(8),
            WireType::LengthDelimited => decode_varint(&mut buf),
            _ => return Ok(None),
        };
        let length = length.ok().and_then(|n| usize::try_from(n).ok());
        let Some(behind) = length.and_then(|n| buf.remaining().checked_sub(n)) else {
            return Ok(None);
        };
        let inner = fields.iter().find(|&&(of, _)| of == tag && wire == WireType::LengthDelimited);
        match inner {
            Some(&(_, inner)) => {
                if walk(buf, inner, behind, depth + 1, budget)?.is_none() {
                    return Ok(None);
                }
            }
            None => buf.advance(buf.remaining() - behind),
        }
    }
    Ok(Some(()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use prost::Message;

    fn field(tag: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_key(tag, WireType::LengthDelimited, &mut bytes);
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        [bytes, content.to_vec()].concat()
    }

    /// Every list of messages of two bytes is refused before it is decoded, and smaller ones are not. What `ask` takes
    /// for a file is at least what its structs take.
    #[test]
    fn lists_of_empty_messages() {
        let paths: [&[u32]; 16] = [
            &[7, 1],
            &[7, 5],
            &[7, 13],
            &[7, 11],
            &[8],
            &[14],
            &[25],
            &[7, 15],
            &[7, 1, 5],
            &[7, 1, 1],
            &[7, 1, 5, 9],
            &[7, 1, 5, 10],
            &[7, 1, 5, 6, 1],
            &[7, 11, 2, 1, 2, 1],
            &[25, 7],
            &[7, 5, 13],
        ];
        for path in paths {
            let (&last, outer) = path.split_last().unwrap();
            let model = |n: usize| {
                let inner = field(last, &[]).repeat(n);
                outer.iter().rev().fold(inner, |inner, &tag| field(tag, &inner))
            };
            let said = |n: usize| ask(&mut model(n).as_slice(), &Budget::new(16 << 20));
            assert!(said(1000).is_ok(), "{path:?}");
            let error = said(1 << 20).unwrap_err().to_string();
            assert!(error.contains("host memory"), "{path:?}: {error}");
            assert!(ModelProto::decode(model(1000).as_slice()).is_ok(), "{path:?}");
        }
        let nodes = field(7, &field(1, &[]).repeat(10_000));
        let budget = Budget::new(16 << 20);
        ask(&mut nodes.as_slice(), &budget).unwrap();
        assert!(budget.used() >= 10_000 * size_of::<NodeProto>(), "{}", budget.used());
    }
}
