import { compact, type Normalised, type ProblemList, problemList, unify } from '../../schema/normalize.ts'
import { type CanonicalProxySettings, normaliseProxySettings } from '../../shared/proxy-settings.ts'
import { DEFAULT_PORT, type EnvVariable, reportUnsupportedRefs } from '../../shared/workload-fields.ts'
import type { MCPServer } from './schema.ts'

type Spec = MCPServer['spec']

export interface CanonicalMCPServerSpec extends CanonicalProxySettings {
  image: string
  transport: NonNullable<Spec['transport']>
  /** How the proxy really speaks: for anything but stdio, like the server. */
  proxyMode: NonNullable<Spec['proxyMode']>
  mcpPort: number
  args: string[]
  env: EnvVariable[]
  secrets: NonNullable<Spec['secrets']>
  volumes: Required<NonNullable<Spec['volumes']>[number]>[]
  permissionProfile?: CanonicalPermissionProfile
  /** Only in objects that name no MCPToolConfig. Empty: no filter. */
  tools: string[]
  backendReplicas?: number
}

export type CanonicalPermissionProfile = { type: 'builtin'; name: string } | { type: 'configmap'; name: string; key: string }

export function normaliseMcpServer({ spec }: Pick<MCPServer, 'spec'>): Normalised<CanonicalMCPServerSpec> {
  const problems = problemList()
  const transport = spec.transport ?? 'stdio'
  if (spec.toolConfigRef && spec.tools?.length) {
    problems.add('spec.tools', 'forbidden', 'spec.tools and spec.toolConfigRef must not both be set: put the tools into the MCPToolConfig')
  }
  reportUnsupportedRefs(problems, spec)
  const canonical = compact({
    image: spec.image,
    transport,
    proxyMode: transport === 'stdio' ? (spec.proxyMode ?? 'streamable-http') : transport,
    mcpPort: unify(problems, { 'spec.mcpPort': spec.mcpPort, 'spec.targetPort': spec.targetPort }) ?? DEFAULT_PORT,
    args: spec.args ?? [],
    env: spec.env ?? [],
    secrets: spec.secrets ?? [],
    volumes: (spec.volumes ?? []).map((volume) => ({ ...volume, readOnly: volume.readOnly ?? false })),
    permissionProfile: canonicalProfile(problems, spec.permissionProfile),
    tools: spec.toolConfigRef ? [] : (spec.tools ?? []),
    backendReplicas: spec.backendReplicas,
    ...normaliseProxySettings(problems, spec),
  })
  return { spec: canonical, problems: problems.all }
}

function canonicalProfile(problems: ProblemList, profile: Spec['permissionProfile']): CanonicalPermissionProfile | undefined {
  if (!profile) return undefined
  if (profile.type !== 'configmap') return { type: 'builtin', name: profile.name }
  if (profile.key) return { type: 'configmap', name: profile.name, key: profile.key }
  problems.add('spec.permissionProfile.key', 'missing', 'spec.permissionProfile.key must be set, because type is configmap')
  return undefined
}
