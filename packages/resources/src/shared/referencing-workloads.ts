import { list, obj, oneOf, str } from '../schema/nodes.ts'

/** Kinds that can reference an MCPToolConfig or an MCPExternalAuthConfig. */
export const WORKLOAD_KINDS = ['MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer', 'MCPServerEntry'] as const
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number]
export const WorkloadKindMCPServer: WorkloadKind = 'MCPServer'
export const WorkloadKindMCPRemoteProxy: WorkloadKind = 'MCPRemoteProxy'
export const WorkloadKindVirtualMCPServer: WorkloadKind = 'VirtualMCPServer'
export const WorkloadKindMCPServerEntry: WorkloadKind = 'MCPServerEntry'

export const referencingWorkloads = () =>
  list(
    'The workloads that use this object, sorted by kind and name. While there are any, deletion waits.',
    obj('A workload that uses this object.', {
      kind: oneOf('Kind of the workload.', WORKLOAD_KINDS),
      name: str('Name of the workload.', { minLength: 1, maxLength: 253 }),
    }),
    { merge: ['kind', 'name'] },
  )
