import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'

export interface UnroutedRequest {
  readonly method: string
  readonly params: JsonObject
}

/** The backends whose lists, which are not known, may have what a request names: all, unless names have prefixes. Pure. */
export function possibleBackends(
  { method, params: { name } }: UnroutedRequest,
  backends: readonly string[],
  { conflictResolution, conflictResolutionConfig }: AggregationConfig,
): readonly string[] {
  const isNamed = method === METHODS.toolsCall || method === METHODS.promptsGet
  if (isNamed && typeof name !== 'string') return []
  if (typeof name !== 'string' || !isNamed || conflictResolution !== 'prefix') return backends
  const lengths = backends.map((backend) => {
    const prefix = conflictResolutionConfig.prefixFormat.replaceAll('{workload}', () => backend).replace(/[^A-Za-z0-9_-]/gu, '_')
    return name.startsWith(prefix) ? prefix.length : -1
  })
  const longest = Math.max(...lengths)
  return longest < 0 ? [] : backends.filter((_, index) => lengths[index] === longest)
}
