//! What is told of a module as a whole.
//!
//! The methods of [`Module`](crate::Module) are compiled for every type that is a module; they
//! only call these functions, which are compiled once.

use crate::dropout::RngStream;
use crate::init::Init;
use crate::module::{Path, Visitor};
use std::collections::BTreeMap;
use zyx_core::{DType, Device, Param, Result, Tensor};

/// The method [`visit`](crate::Module::visit) of some module.
type Visit<'a> = &'a dyn Fn(&mut Path, &mut dyn Visitor);

/// All parameters with their names, in the order of the visit. From now on they know them.
pub(crate) fn named_parameters(visit: Visit<'_>) -> Vec<(String, Param)> {
    struct Collect(Vec<(String, Param)>);
    impl Visitor for Collect {
        fn parameter(&mut self, name: &str, parameter: &Param) {
            parameter.set_name(name);
            self.0.push((name.to_owned(), parameter.clone()));
        }
    }
    let mut collect = Collect(Vec::new());
    visit(&mut Path::default(), &mut collect);
    collect.0
}

/// All random streams with their names.
pub(crate) fn named_streams(visit: Visit<'_>) -> Vec<(String, RngStream)> {
    struct Collect(Vec<(String, RngStream)>);
    impl Visitor for Collect {
        fn stream(&mut self, name: &str, stream: &RngStream) {
            self.0.push((name.to_owned(), stream.clone()));
        }
    }
    let mut collect = Collect(Vec::new());
    visit(&mut Path::default(), &mut collect);
    collect.0
}

/// Each parameter once, where it is named first.
pub(crate) fn distinct(named: Vec<(String, Param)>) -> Vec<Param> {
    let mut parameters: Vec<Param> = Vec::new();
    for (_, parameter) in named {
        if !parameters.iter().any(|known| known.is_same(&parameter)) {
            parameters.push(parameter);
        }
    }
    parameters
}

/// Number of elements of those that are trained.
pub(crate) fn n_trainable(parameters: &[Param]) -> usize {
    let trainable = parameters.iter().filter(|parameter| parameter.is_trainable());
    trainable.map(|parameter| parameter.shape().numel()).sum()
}

/// Moves all to a device.
#[track_caller]
pub(crate) fn to_device(parameters: &[Param], device: &Device) -> Result<()> {
    for parameter in parameters {
        parameter.convert(parameter.dtype(), device)?;
    }
    Ok(())
}

/// Converts those of floats.
#[track_caller]
pub(crate) fn to_dtype(parameters: &[Param], dtype: DType) -> Result<()> {
    if !dtype.is_float() {
        let reason =
            format!("{dtype} is no dtype of floats, which parameters and their gradients are");
        return Err(Init::refuse("to_dtype", reason));
    }
    for parameter in parameters.iter().filter(|parameter| parameter.dtype().is_float()) {
        parameter.convert(dtype, &parameter.device())?;
    }
    Ok(())
}

/// Those that are state.
pub(crate) fn state(named: Vec<(String, Param)>) -> Vec<(String, Param)> {
    named.into_iter().filter(|(_, parameter)| parameter.is_state()).collect()
}

/// Keeps all as they are.
pub(crate) fn freeze(parameters: &[Param]) {
    parameters.iter().for_each(|parameter| parameter.set_trainable(false));
}

/// Trains all but state.
pub(crate) fn unfreeze(parameters: &[Param]) {
    let weights = parameters.iter().filter(|parameter| !parameter.is_state());
    weights.for_each(|parameter| parameter.set_trainable(true));
}

/// The values by name.
pub(crate) fn to_tensors(named: Vec<(String, Param)>) -> BTreeMap<String, Tensor> {
    named.into_iter().map(|(name, parameter)| (name, parameter.tensor().detach())).collect()
}

#[cfg(test)]
mod tests {
    use crate::{Conv2d, Forward, Init, LayerNorm, Linear, Module, MultiheadAttention, Sequential};
    use zyx_core::{Conv2dOptions, DType, Device, Result, Runtime, Tensor};

    #[derive(Module)]
    struct Net {
        conv: Conv2d,
        norm: LayerNorm,
        attention: MultiheadAttention,
        body: Sequential,
        fc1: Linear,
    }

    impl Net {
        fn new(device: &Device) -> Net {
            let init = &mut Init::new(0, device);
            Net {
                conv: Conv2d::new(1, 2, [3, 3], Conv2dOptions::default(), init).unwrap(),
                norm: LayerNorm::new([4], init).unwrap(),
                attention: MultiheadAttention::new(4, 2, Default::default(), init).unwrap(),
                body: Sequential::new().then(Linear::new(4, 4, init).unwrap()),
                fc1: Linear::new(4, 2, init).unwrap(),
            }
        }
    }

    impl Forward for Net {
        fn forward(&self, x: &Tensor) -> Result<Tensor> {
            self.fc1.forward(x)
        }
    }

    #[test]
    fn errors_name_the_layer_of_a_derived_module_and_the_line_of_the_call() {
        let device = Runtime::default().device("reference").unwrap();
        let net = Net::new(&device);
        let x = Tensor::zeros([2, 3], DType::F32, &device);
        // Nobody has walked over the model: the line is all that is known.
        let (error, line) = (net.fc1.forward(&x).unwrap_err().to_string(), line!());
        assert!(error.ends_with(&format!("{}:{line}:38", file!())), "{error}");
        assert!(!error.contains("in layer"), "{error}");
        net.eval();
        for (error, name) in [
            (net.fc1.forward(&x), "fc1"),
            (net.forward(&x), "fc1"),
            (net.conv.forward(&x), "conv"),
            (net.norm.forward(&x), "norm"),
            (net.attention.forward(&x), "attention"),
            (net.body.forward(&x), "body.0"),
        ] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(&format!("in layer `{name}`: ")), "{error}");
            assert!(error.contains(file!()), "{error}");
        }
        // As a part of another model it has the name in that, and keeps it when it is walked over alone.
        #[derive(Module)]
        struct Outer {
            net: Net,
        }
        let outer = Outer { net };
        outer.parameters();
        outer.net.parameters();
        let error = outer.net.fc1.forward(&x).unwrap_err().to_string();
        assert!(error.contains("in layer `net.fc1`: "), "{error}");
    }

    #[test]
    fn a_module_moves_and_is_converted_as_a_whole() {
        let [from, to] = [0, 1].map(|_| Runtime::default().device("reference").unwrap());
        let net = Net::new(&from);
        net.fc1.freeze();
        let before = net.fc1.weight.tensor().to_vec::<f32>().unwrap();
        net.to_device(&to).unwrap();
        net.to_dtype(DType::F64).unwrap();
        for (name, parameter) in net.named_parameters() {
            assert_eq!((parameter.device(), parameter.dtype()), (to.clone(), DType::F64), "{name}");
            assert_eq!(parameter.is_trainable(), !name.starts_with("fc1"), "{name}");
        }
        let after = net.fc1.weight.tensor().to_vec::<f64>().unwrap();
        assert_eq!(after, before.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>());
    }
}
