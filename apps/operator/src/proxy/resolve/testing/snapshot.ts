import type { MCPGroup } from '@thv/resources/kinds/mcp-group/schema'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Blocker } from '../../../deployment/contribution.ts'
import type { Lookup } from '../../../references/lookup.ts'
import type { Contribution, Resolved, RunConfigDocument } from '../../contribution.ts'

export interface SnapshotObjects {
  readonly configMaps?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Name to keys. */
  readonly secrets?: Readonly<Record<string, readonly string[]>>
  readonly toolConfigs?: Readonly<Record<string, Pick<MCPToolConfig, 'spec' | 'status'>>>
  readonly groups?: Readonly<Record<string, Pick<MCPGroup, 'status'>>>
}

/** A resolver's view of the namespace. */
export function snapshot({ configMaps = {}, secrets = {}, toolConfigs = {}, groups = {} }: SnapshotObjects = {}): Lookup {
  const own = <T>(objects: Readonly<Record<string, T>>, name: string) => (Object.hasOwn(objects, name) ? objects[name] : undefined)
  const version = { uid: 'uid-1', resourceVersion: '7' }
  return {
    configMap: (name) => {
      const data = own(configMaps, name)
      return data && { ...version, data }
    },
    secret: (name) => {
      const keys = own(secrets, name)
      return keys && { ...version, keys: new Set(keys) }
    },
    toolConfig: (name) => {
      const config = own(toolConfigs, name)
      return config && { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPToolConfig', metadata: { name }, ...config }
    },
    group: (name) => {
      const group = own(groups, name)
      return group && { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPGroup', metadata: { name }, ...group }
    },
    externalAuthConfig: () => undefined,
  }
}

/** The contribution; fails when something blocks, or when the runner would not read it as it is written. */
export function contributionOf(resolved: Resolved, base: RunConfigDocument = {}): Contribution {
  if (!resolved.ok) throw new Error(`blocked: ${JSON.stringify(resolved.blockers)}`)
  runnerReads(resolved.contribution, base)
  return resolved.contribution
}

/** The runner's reading of it, without any warning. */
export function runnerReads({ runConfig = {} }: Contribution, base: RunConfigDocument = {}): RunConfig {
  const parts = { ...base, ...runConfig }
  const image = parts.remote_url === undefined ? { image: 'example/server:1' } : {}
  const { embedded_auth_server_config: login } = parts
  // Another resolver contributes it, and `authServerMismatches` compares the two.
  const front = login && { oidc_config: { issuer: login.issuer, audience: login.allowed_audiences[0] } }
  const document = { name: 'x', transport: 'streamable-http', ...image, ...front, ...parts }
  const read = readRunConfig(JSON.parse(JSON.stringify(document)))
  if (!read.ok) throw new Error(`the runner refuses it: ${JSON.stringify(read.problems)}`)
  if (read.warnings.length > 0) throw new Error(`the runner warns: ${JSON.stringify(read.warnings)}`)
  return read.config
}

export function blockersOf(resolved: Resolved): readonly Blocker[] {
  if (resolved.ok) throw new Error('is not blocked')
  return resolved.blockers
}
