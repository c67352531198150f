/** Name of the source that the storage ConfigMap of the `source` shape feeds. */
export const STORAGE_ENTRY = 'storage'
