//! The Vulkan library, one instance of it, and what devices it sees.
//!
//! The library is loaded when first asked for and stays; without it, without a driver, or with
//! one older than Vulkan 1.1, there are no devices, and a reason. `ZYX_VULKAN_VALIDATION=1` turns on the
//! validation layer where it is installed; its messages go to standard error and are counted, so
//! that tests can ask for none.

use ash::{Entry, Instance, ext, vk};
use std::ffi::{CStr, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The instance of this process.
pub(crate) struct Vulkan {
    /// Keeps the library loaded.
    _entry: Entry,
    pub(crate) instance: Instance,
    /// Devices with a queue for compute, in the driver's order.
    pub(crate) devices: Vec<vk::PhysicalDevice>,
    /// Whether the validation layer watches.
    pub(crate) validated: bool,
}

/// Where drivers say what library they are, unless the environment names others.
const MANIFESTS: [&str; 3] =
    ["/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"];

const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// Errors and warnings the validation layer has told.
static MESSAGES: AtomicUsize = AtomicUsize::new(0);

/// How many errors and warnings the validation layer has told.
pub(crate) fn messages() -> usize {
    MESSAGES.load(Ordering::Relaxed)
}

/// Why there is no instance.
#[derive(Clone, Debug)]
pub(crate) enum Unusable {
    /// No loader, no driver, or a loader that is too old.
    Absent(String),
    /// What is there refused.
    Broken(String),
}

/// The instance, if Vulkan is there.
pub(crate) fn vulkan() -> Result<&'static Vulkan, Unusable> {
    static VULKAN: OnceLock<Result<Vulkan, Unusable>> = OnceLock::new();
    VULKAN.get_or_init(load).as_ref().map_err(Unusable::clone)
}

fn load() -> Result<Vulkan, Unusable> {
    let broken = |what: &str, code: vk::Result| Unusable::Broken(format!("{what}: {code}"));
    // SAFETY: loading a library runs its initialisers; the system's Vulkan loader is made for it.
    let entry = unsafe { Entry::load() }.map_err(|error| match error {
        ash::LoadingError::LibraryLoadFailure(error) => Unusable::Absent(format!(
            "no Vulkan loader ({error}); install libvulkan1 or the GPU's driver"
        )),
        error => Unusable::Broken(format!("the Vulkan loader: {error}")),
    })?;
    // SAFETY: the loader is there; the function has no preconditions.
    let version = unsafe { entry.try_enumerate_instance_version() }
        .map_err(|code| broken("asking for Vulkan's version", code))?
        .unwrap_or(vk::API_VERSION_1_0);
    if version < vk::API_VERSION_1_1 {
        return Err(Unusable::Absent("the Vulkan loader knows 1.0, 1.1 is needed".to_owned()));
    }
    let validated = wants_validation() && has_layer(&entry);
    let layers: Vec<_> = if validated { vec![LAYER.as_ptr()] } else { Vec::new() };
    let extensions: Vec<_> =
        if validated { vec![ext::debug_utils::NAME.as_ptr()] } else { Vec::new() };
    let application = vk::ApplicationInfo::default()
        .application_name(c"zyx")
        .engine_name(c"zyx")
        .api_version(version.min(vk::API_VERSION_1_3));
    let mut messenger = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
                | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
        )
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(told));
    let info = vk::InstanceCreateInfo::default()
        .application_info(&application)
        .enabled_layer_names(&layers)
        .enabled_extension_names(&extensions);
    let info = if validated { info.push_next(&mut messenger) } else { info };
    // SAFETY: the structures are alive and name layers and extensions that are there.
    let instance = unsafe { entry.create_instance(&info, None) }.map_err(|code| match code {
        // What the loader says where no driver of its list can be used.
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => damaged().map_or_else(
            || Unusable::Absent("the Vulkan loader has no driver; install the GPU's".to_owned()),
            Unusable::Broken,
        ),
        code => broken("creating a Vulkan instance", code),
    })?;
    if validated {
        messenger.p_next = std::ptr::null();
        let debug = ext::debug_utils::Instance::new(&entry, &instance);
        // SAFETY: the extension is enabled. The messenger lives as long as the process.
        let _ = unsafe { debug.create_debug_utils_messenger(&messenger, None) };
    }
    // SAFETY: a valid instance.
    let all = unsafe { instance.enumerate_physical_devices() };
    let usable = |&device: &vk::PhysicalDevice| {
        // SAFETY: a device of this instance.
        let properties = unsafe { instance.get_physical_device_properties(device) };
        properties.api_version >= vk::API_VERSION_1_1 && family(&instance, device).is_some()
    };
    let all = all.map_err(|code| broken("asking for Vulkan devices", code))?;
    let devices = all.into_iter().filter(usable).collect();
    Ok(Vulkan { _entry: entry, instance, devices, validated })
}

/// What is wrong with a driver that is installed and cannot be loaded. The loader passes over it without a word.
fn damaged() -> Option<String> {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].map(std::env::var_os);
    let paths: Vec<PathBuf> = match named.iter().flatten().next() {
        Some(paths) => std::env::split_paths(paths).collect(),
        None => MANIFESTS.iter().map(PathBuf::from).collect(),
    };
    let inside = |path: PathBuf| match std::fs::read_dir(&path) {
        Ok(folder) => folder.flatten().map(|entry| entry.path()).collect(),
        Err(_) => vec![path],
    };
    paths.into_iter().flat_map(inside).find_map(|manifest| {
        let text = std::fs::read_to_string(&manifest).ok()?;
        let name = text.split_once("\"library_path\"")?.1.split('"').nth(1)?;
        // A path is relative to the manifest; a name alone is looked for where the system's libraries are.
        let library = match name.contains('/') {
            true => manifest.parent()?.join(name),
            false => PathBuf::from(name),
        };
        // SAFETY: a driver of this system, which the loader has tried to load just now.
        match unsafe { Entry::load_from(&library) } {
            Err(ash::LoadingError::LibraryLoadFailure(error)) => Some(format!(
                "the driver of {} cannot be loaded ({error}); install it again",
                manifest.display()
            )),
            _ => None,
        }
    })
}

fn wants_validation() -> bool {
    std::env::var_os("ZYX_VULKAN_VALIDATION").is_some_and(|value| value == "1")
}

fn has_layer(entry: &Entry) -> bool {
    // SAFETY: the loader is there; the function has no preconditions.
    let layers = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
    layers.iter().any(|layer| layer.layer_name_as_c_str().is_ok_and(|name| name == LAYER))
}

/// The family of queues to use, with the number of its bits of time: one for compute.
pub(crate) fn family(instance: &Instance, device: vk::PhysicalDevice) -> Option<(u32, u32)> {
    // SAFETY: a device of this instance.
    let families = unsafe { instance.get_physical_device_queue_family_properties(device) };
    let found = families.iter().enumerate().find(|(_, family)| {
        family.queue_count > 0 && family.queue_flags.contains(vk::QueueFlags::COMPUTE)
    });
    found.map(|(index, family)| (index as u32, family.timestamp_valid_bits))
}

/// Called by the validation layer.
///
/// # Safety
/// `data` must be null or point to a message with null or C strings, as the layer guarantees.
unsafe extern "system" fn told(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _: *mut c_void,
) -> vk::Bool32 {
    MESSAGES.fetch_add(1, Ordering::Relaxed);
    // SAFETY: by the contract of this function.
    let message = unsafe { data.as_ref() }.filter(|data| !data.p_message.is_null());
    // SAFETY: as above.
    let text = message.map(|data| unsafe { CStr::from_ptr(data.p_message) }.to_string_lossy());
    eprintln!("Vulkan validation: {}", text.unwrap_or_default());
    vk::FALSE
}
