import type { CanonicalCABundleRef } from '@thv/resources/shared/ca-bundle-ref'
import { DEFAULT_OIDC_SCOPES } from '@thv/resources/shared/inline-oidc'
import { DEFAULT_OIDC_CONFIG_MAP_KEY } from '@thv/resources/shared/oidc-config'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import { parseJsonText } from '@thv/runconfig/json-text'
import type { ConfigMapContent, Lookup } from '../../references/lookup.ts'
import type { ClientSecret, SettingsResult } from './oidc-settings.ts'

const TEXTS = [
  'issuer',
  'audience',
  'jwksUrl',
  'introspectionUrl',
  'clientId',
  'clientSecret',
  'thvCABundlePath',
  'jwksAuthTokenPath',
] as const
const FLAGS = ['jwksAllowPrivateIP', 'protectedResourceAllowPrivateIP', 'insecureAllowHTTP'] as const
const MEMBERS: readonly string[] = [...TEXTS, ...FLAGS, 'scopes']

type Values = { [Member in (typeof TEXTS)[number]]?: string } & { [Member in (typeof FLAGS)[number]]?: boolean } & { scopes?: string[] }

/**
 * Both forms that design document 002 shows: the settings as keys of the ConfigMap, or as members of a JSON document at one key; keys win
 * over members. Whatever might be a misspelt setting is refused, since a setting that is not seen may be one that protects.
 */
export function readOidcConfigMap(
  config: { name: string; key: string; caBundleRef?: CanonicalCABundleRef },
  lookup: Pick<Lookup, 'configMap'>,
): SettingsResult {
  const { name, key } = config
  const content = lookup.configMap(name)
  const fail = (reason: string, messages: readonly string[]): SettingsResult => ({
    ok: false,
    blockers: [{ condition: WorkloadCondition.ConfigurationValid, reason, message: messages.join('; ') }],
  })
  if (content === undefined) {
    const message = `spec.oidcConfig.configMap names ConfigMap ${name}, which does not exist: create it with the key issuer, or with a JSON document at the key ${key}`
    return fail(WorkloadReason.OIDCConfigMapNotFound, [message])
  }

  const problems: string[] = []
  const document = documentOf(content, { key, problems })
  const keys = keysOf(content, problems)
  const values: Values = { ...document, ...keys }
  if (problems.length === 0 && values.issuer === undefined)
    problems.push(`says no issuer: add the key issuer, or a JSON document with the member issuer at the key ${key}`)
  const { issuer } = values
  if (issuer === undefined || problems.length > 0)
    return fail(
      WorkloadReason.OIDCConfigMapInvalid,
      problems.map((problem) => `ConfigMap ${name} ${problem}`),
    )

  const { thvCABundlePath } = values
  return {
    ok: true,
    settings: {
      at: (member) => {
        if (member === 'caBundleRef') return 'spec.oidcConfig.configMap.caBundleRef'
        return Object.hasOwn(keys, member) ? `key ${member} of ConfigMap ${name}` : `${member} at key ${key} of ConfigMap ${name}`
      },
      issuer,
      isThisCluster: false,
      audience: values.audience,
      jwksUrl: values.jwksUrl,
      introspectionUrl: values.introspectionUrl,
      clientId: values.clientId,
      clientSecret: clientSecret(values, { name, content, isKey: keys.clientSecret !== undefined }),
      caBundlePath: thvCABundlePath,
      caBundleRef: thvCABundlePath === undefined ? config.caBundleRef : undefined,
      authTokenPath: values.jwksAuthTokenPath,
      clusterAuth: false,
      allowPrivateIp: values.protectedResourceAllowPrivateIP ?? false,
      jwksAllowPrivateIp: values.jwksAllowPrivateIP ?? false,
      insecureAllowHttp: values.insecureAllowHTTP ?? false,
      scopes: values.scopes?.length ? values.scopes : DEFAULT_OIDC_SCOPES,
    },
  }
}

/** By reference where that can be: so it stands in clear in one ConfigMap and not in two. */
function clientSecret(
  { clientSecret: value }: Values,
  { name, content, isKey }: { name: string; content: ConfigMapContent; isKey: boolean },
): ClientSecret | undefined {
  if (value === undefined) return undefined
  if (!isKey) return { from: 'text', value }
  return { from: 'configMap', ref: { name, key: 'clientSecret' }, version: `${content.uid}/${content.resourceVersion}` }
}

function documentOf({ data }: ConfigMapContent, { key, problems }: { key: string; problems: string[] }): Values {
  const text = data[key]
  if (text === undefined) {
    // The default key may be missing: the spec may not have set it.
    if (key !== DEFAULT_OIDC_CONFIG_MAP_KEY) problems.push(`has no key ${key}: add it, or remove spec.oidcConfig.configMap.key`)
    return {}
  }
  const parsed = parseJsonText(text)
  if (!parsed.ok) {
    problems.push(`key ${key} is not JSON (line ${parsed.line}, column ${parsed.column})`)
    return {}
  }
  if (typeof parsed.value !== 'object' || parsed.value === null || Array.isArray(parsed.value)) {
    problems.push(`key ${key} is not a JSON object`)
    return {}
  }
  const document = parsed.value as Record<string, unknown>
  for (const member of Object.keys(document)) {
    if (!MEMBERS.includes(member)) problems.push(`key ${key}: ${quoted(member)} is not a setting; there are ${MEMBERS.join(', ')}`)
  }
  return valuesOf(document, { problems, where: (member) => `key ${key}: ${member}` })
}

function keysOf({ data }: ConfigMapContent, problems: string[]): Values {
  const folded = new Map(MEMBERS.map((member) => [fold(member), member]))
  for (const key of Object.keys(data)) {
    const meant = folded.get(fold(key))
    // Other keys may be there for somebody else.
    if (meant !== undefined && meant !== key) problems.push(`key ${key} must be written as ${meant}`)
  }
  return valuesOf(data, { problems, where: (member) => `key ${member}` })
}

function valuesOf(
  source: Readonly<Record<string, unknown>>,
  { problems, where }: { problems: string[]; where: (member: string) => string },
): Values {
  const values: Values = {}
  const given = (member: string) => {
    const value = Object.hasOwn(source, member) ? source[member] : undefined
    const trimmed = typeof value === 'string' ? value.trim() : value
    return trimmed === '' || trimmed === null ? undefined : trimmed
  }
  for (const member of TEXTS) {
    const value = given(member)
    if (typeof value === 'string') values[member] = value
    else if (value !== undefined) problems.push(`${where(member)} must be a text`)
  }
  for (const member of FLAGS) {
    const value = given(member)
    const flag = typeof value === 'string' ? { true: true, false: false }[value.toLowerCase()] : value
    if (typeof flag === 'boolean') values[member] = flag
    else if (value !== undefined) problems.push(`${where(member)} must be true or false`)
  }
  const scopes = given('scopes')
  const list = typeof scopes === 'string' ? scopes.split(/[\s,]+/).filter((scope) => scope !== '') : scopes
  if (Array.isArray(list) && list.every((scope) => typeof scope === 'string' && /^\S+$/.test(scope))) values.scopes = list
  else if (scopes !== undefined) problems.push(`${where('scopes')} must be a list of scopes`)
  return values
}

function fold(key: string): string {
  return key.replaceAll(/[-_.]/g, '').toLowerCase()
}

function quoted(member: string): string {
  return JSON.stringify(member.length > 40 ? `${member.slice(0, 40)}…` : member)
}
