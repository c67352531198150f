import type { Static } from 'typebox'
import { unionRules } from '../schema/cel.ts'
import { list, obj, oneOf, opt, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'

export const DEFAULT_AUTHZ_CONFIG_MAP_KEY = 'authz.json'

/** Authorization by Cedar policies. */
export const authzConfig = (description: string) =>
  obj(
    description,
    {
      type: opt(oneOf('Source of the policies.', ['configMap', 'inline'], { default: 'configMap' })),
      configMap: opt(
        obj('Reads the policies from a ConfigMap.', {
          name: str('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
          key: opt(
            str('Key of the authorization document, in JSON or YAML.', {
              minLength: 1,
              maxLength: 253,
              default: DEFAULT_AUTHZ_CONFIG_MAP_KEY,
            }),
          ),
        }),
      ),
      inline: opt(
        obj('Inline policies.', {
          policies: list('Cedar policies.', str('One Cedar policy.', { minLength: 1, maxLength: 65536 }), { minItems: 1, maxItems: 1000 }),
          entitiesJson: opt(str('Cedar entities as a JSON array.', { default: '[]' })),
          primaryUpstreamProvider: opt(
            str('Upstream whose token the policies see. Only used by VirtualMCPServer.', {
              minLength: 1,
              maxLength: 63,
              pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
            }),
          ),
        }),
      ),
      groupClaimName: opt(str('Claim that lists the groups of the user.', { maxLength: 253 })),
      roleClaimName: opt(str('Claim that lists the roles of the user.', { maxLength: 253 })),
      groupEntityType: opt(
        str('Cedar entity type of a group; THVGroup by default.', { maxLength: 63, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
      ),
    },
    { rules: unionRules('type', { configMap: 'configMap', inline: 'inline' }) },
  )

export type AuthzConfig = Static<ReturnType<typeof authzConfig>>
type ClaimNames = Pick<AuthzConfig, 'groupClaimName' | 'roleClaimName' | 'groupEntityType'>

export type CanonicalAuthzConfig = ClaimNames &
  (
    | { type: 'configMap'; configMap: { name: string; key: string } }
    | { type: 'inline'; inline: { policies: string[]; entitiesJson: string; primaryUpstreamProvider?: string } }
  )

/** A config without the member of its type is a problem and counts as absent; with the problem, no open proxy may be started. */
export function normaliseAuthzConfig(
  problems: ProblemList,
  field: string,
  value: AuthzConfig | undefined,
): CanonicalAuthzConfig | undefined {
  if (!value) return undefined
  const { type = 'configMap', configMap, inline, ...claims } = value
  if (type === 'configMap' && configMap) {
    return { ...claims, type, configMap: { name: configMap.name, key: configMap.key ?? DEFAULT_AUTHZ_CONFIG_MAP_KEY } }
  }
  if (type === 'inline' && inline) {
    const { policies, primaryUpstreamProvider } = inline
    return { ...claims, type, inline: compact({ policies, entitiesJson: inline.entitiesJson ?? '[]', primaryUpstreamProvider }) }
  }
  problems.add(field, 'missing', `${field}.${type} must be set, because type is ${type}`)
  return undefined
}
