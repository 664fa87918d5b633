//! The Vulkan library, one instance of it, and what devices it sees.
//!
//! The library is loaded when first asked for and stays; without it, without a driver, or with
//! one older than Vulkan 1.1, there are no devices. `ZYX_VULKAN_VALIDATION=1` turns on the
//! validation layer where it is installed; its messages go to standard error and are counted, so
//! that tests can ask for none.

use ash::{Entry, Instance, ext, vk};
use std::ffi::{CStr, c_void};
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

const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// Errors and warnings the validation layer has told.
static MESSAGES: AtomicUsize = AtomicUsize::new(0);

/// How many errors and warnings the validation layer has told.
pub(crate) fn messages() -> usize {
    MESSAGES.load(Ordering::Relaxed)
}

/// The instance, if Vulkan is there.
pub(crate) fn vulkan() -> Option<&'static Vulkan> {
    static VULKAN: OnceLock<Option<Vulkan>> = OnceLock::new();
    VULKAN.get_or_init(load).as_ref()
}

fn load() -> Option<Vulkan> {
    // SAFETY: loading a library runs its initialisers; the system's Vulkan loader is made for it.
    let entry = unsafe { Entry::load() }.ok()?;
    // SAFETY: the loader is there; the function has no preconditions.
    let version = unsafe { entry.try_enumerate_instance_version() }.ok()??;
    if version < vk::API_VERSION_1_1 {
        return None;
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
    let instance = unsafe { entry.create_instance(&info, None) }.ok()?;
    if validated {
        messenger.p_next = std::ptr::null();
        let debug = ext::debug_utils::Instance::new(&entry, &instance);
        // SAFETY: the extension is enabled. The messenger lives as long as the process.
        let _ = unsafe { debug.create_debug_utils_messenger(&messenger, None) };
    }
    // SAFETY: a valid instance.
    let all = unsafe { instance.enumerate_physical_devices() }.unwrap_or_default();
    let usable = |&device: &vk::PhysicalDevice| {
        // SAFETY: a device of this instance.
        let properties = unsafe { instance.get_physical_device_properties(device) };
        properties.api_version >= vk::API_VERSION_1_1 && family(&instance, device).is_some()
    };
    let devices = all.into_iter().filter(usable).collect();
    Some(Vulkan { _entry: entry, instance, devices, validated })
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
