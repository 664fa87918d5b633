//! `#[derive(Module)]`: a struct of layers is a module.
//!
//! The derived `visit` calls `visit` of every field under the field's name, in order; fields of a
//! tuple struct are named by their number. There is no guessing from types: parameters, modules,
//! plain numbers and options, vectors, arrays and boxes of them implement `Module` themselves, and
//! a field that cannot is marked `#[module(skip)]`.
//!
//! ```text
//! #[derive(Module)]
//! struct Block {
//!     linear: Linear,
//!     #[module(skip)]
//!     cache: Mutex<Vec<Tensor>>,
//! }
//! ```
//! becomes
//! ```text
//! impl ::zyx_nn::Module for Block {
//!     fn visit(&self, path: &mut ::zyx_nn::Path, visitor: &mut dyn ::zyx_nn::Visitor) {
//!         path.within("linear", |path| ::zyx_nn::Module::visit(&self.linear, path, visitor));
//!     }
//! }
//! ```
//!
//! The macro exists twice because generated code must name the crate it is used through: `nn` by
//! itself, or `zyx::nn` through the facade.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Index, Result, parse_quote};

/// Derives `zyx_nn::Module` for a struct.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(input: TokenStream) -> TokenStream {
    expand(input, &quote!(::zyx_nn))
}

/// Derives `zyx::nn::Module` for a struct; exported there under the name `Module`.
#[proc_macro_derive(FacadeModule, attributes(module))]
pub fn facade_module(input: TokenStream) -> TokenStream {
    expand(input, &quote!(::zyx::nn))
}

fn expand(input: TokenStream, nn: &Tokens) -> TokenStream {
    let parsed = syn::parse(input).and_then(|input| derive(input, nn));
    parsed.unwrap_or_else(|error| error.to_compile_error()).into()
}

fn derive(mut input: DeriveInput, nn: &Tokens) -> Result<Tokens> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "only a struct can derive Module"));
    };
    let mut visits = Vec::new();
    for (i, field) in data.fields.iter().enumerate() {
        if is_skipped(&field.attrs)? {
            continue;
        }
        let (member, name) = match &field.ident {
            Some(ident) => (quote!(#ident), ident.to_string().trim_start_matches("r#").to_owned()),
            None => {
                let index = Index::from(i);
                (quote!(#index), i.to_string())
            }
        };
        // Where a type is no module, the compiler's error points at the field.
        visits.push(quote_spanned! { field.ty.span() =>
            path.within(#name, |path| #nn::Module::visit(&self.#member, path, visitor));
        });
    }
    if matches!(data.fields, Fields::Unit) {
        visits.push(quote!(let _ = (path, visitor);));
    }
    for parameter in input.generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#nn::Module));
    }
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics #nn::Module for #name #arguments #bounds {
            fn visit(&self, path: &mut #nn::Path, visitor: &mut dyn #nn::Visitor) {
                #(#visits)*
            }
        }
    })
}

/// Whether a field is marked `#[module(skip)]`.
fn is_skipped(attributes: &[Attribute]) -> Result<bool> {
    let mut skipped = false;
    for attribute in attributes.iter().filter(|a| a.path().is_ident("module")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("skip") {
                return Err(meta.error("the only argument is `skip`"));
            }
            skipped = true;
            Ok(())
        })?;
    }
    Ok(skipped)
}
