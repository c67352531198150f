import type { Static } from 'typebox'
import { unionRules } from '../schema/cel.ts'
import { list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'

export const DEFAULT_AUTHZ_CONFIG_MAP_KEY = 'authz.json'

const RULES = { rules: unionRules('type', { configMap: 'configMap', inline: 'inline' }) }

const configMap = () =>
  obj('Reads the policies from a ConfigMap.', {
    name: str('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
    key: opt(
      str('Key of the authorization document, in JSON or YAML.', { minLength: 1, maxLength: 253, default: DEFAULT_AUTHZ_CONFIG_MAP_KEY }),
    ),
  })

const inlineMembers = () => ({
  policies: list('Cedar policies.', str('One Cedar policy.', { minLength: 1, maxLength: 65536 }), { minItems: 1, maxItems: 1000 }),
  entitiesJson: opt(str('Cedar entities as a JSON array.', { default: '[]' })),
})

const claimNames = (otherwise: string) => ({
  groupClaimName: opt(str(`Claim that lists the groups of the user${otherwise}.`, { maxLength: 253 })),
  roleClaimName: opt(str(`Claim that lists the roles of the user${otherwise}.`, { maxLength: 253 })),
})

const groupEntityType = (description: string) => opt(str(description, { maxLength: 63, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }))

const sourceType = () => opt(oneOf('Source of the policies.', ['configMap', 'inline'], { default: 'configMap' }))

const members = () => ({
  type: sourceType(),
  configMap: opt(configMap()),
  inline: opt(
    obj('Inline policies.', {
      ...inlineMembers(),
      primaryUpstreamProvider: opt(
        str('Upstream provider of the embedded authorization server whose claims the policies see.', {
          minLength: 1,
          maxLength: 63,
          pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
        }),
      ),
    }),
  ),
  ...claimNames(''),
  groupEntityType: groupEntityType('Cedar entity type of a group; THVGroup by default.'),
})

const candidate = () =>
  obj(
    'Policies that are evaluated beside the enforced ones and never enforced. Audit events and a metric show where they decide otherwise.',
    {
      type: sourceType(),
      configMap: opt(configMap()),
      inline: opt(obj('Inline policies.', inlineMembers())),
      ...claimNames('; that of the enforced policies by default'),
      groupEntityType: groupEntityType('Cedar entity type of a group; that of the enforced policies by default.'),
    },
    RULES,
  )

/** Authorization by Cedar policies. */
export const authzConfig = (description: string) => obj(description, members(), RULES)

/** The same, with policies that are only tried. */
export const authzConfigWithCandidate = (description: string) => obj(description, { ...members(), candidate: opt(candidate()) }, RULES)

export type AuthzConfig = Static<ReturnType<typeof authzConfig>>
type CandidateConfig = Static<ReturnType<typeof candidate>>
type ClaimNames = Pick<AuthzConfig, 'groupClaimName' | 'roleClaimName' | 'groupEntityType'>

/** Where policies come from, and which claims they mean. */
export type CanonicalPolicySource = ClaimNames &
  (
    | { type: 'configMap'; configMap: { name: string; key: string } }
    | { type: 'inline'; inline: { policies: string[]; entitiesJson: string; primaryUpstreamProvider?: string } }
  )

export type CanonicalAuthzConfig = CanonicalPolicySource & { candidate?: CanonicalPolicySource }

/** A config without the member of its type is a problem and counts as absent; with the problem, no open proxy may be started. */
export function normaliseAuthzConfig(
  problems: ProblemList,
  field: string,
  value: (AuthzConfig & { candidate?: CandidateConfig }) | undefined,
): CanonicalAuthzConfig | undefined {
  if (!value) return undefined
  const { candidate: tried, ...enforced } = value
  const source = normaliseSource(problems, field, enforced)
  const beside = tried && normaliseSource(problems, `${field}.candidate`, tried)
  return source && { ...source, ...(beside && { candidate: beside }) }
}

function normaliseSource(problems: ProblemList, field: string, value: AuthzConfig): CanonicalPolicySource | undefined {
  const { type = 'configMap', configMap: map, inline, ...claims } = value
  if (type === 'configMap' && map) {
    return { ...claims, type, configMap: { name: map.name, key: map.key ?? DEFAULT_AUTHZ_CONFIG_MAP_KEY } }
  }
  if (type === 'inline' && inline) {
    const { policies, primaryUpstreamProvider } = inline
    return { ...claims, type, inline: compact({ policies, entitiesJson: inline.entitiesJson ?? '[]', primaryUpstreamProvider }) }
  }
  problems.add(field, 'missing', `${field}.${type} must be set, because type is ${type}`)
  return undefined
}

/** ConfigMaps that the policies are read from. */
export function authzConfigMaps(config: CanonicalAuthzConfig | undefined): string[] {
  return [config, config?.candidate].flatMap((source) => (source?.type === 'configMap' ? [source.configMap.name] : []))
}
