import { jsonEqual } from '@thv/kernel/json'
import type { Findings, Problem } from './field.ts'
import type { MiddlewareConfig, RunConfig } from './run-config.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'
import type { JsonObject } from './value-readers.ts'

/** What the body limit always is. */
export const BODY_LIMIT_BYTES = 8_388_608

/**
 * The chain is made from the typed fields alone. An entry of a middleware list is accepted when it asks for what they ask for already,
 * or for what is always there; anything else would be a wish that nobody fulfils, so it is a problem that names the field to use.
 */
export function middlewareProblems(config: RunConfig): Problem[] {
  return [...listProblems('middleware_configs', config), ...listProblems('additional_middleware_configs', config)]
}

function listProblems(list: 'middleware_configs' | 'additional_middleware_configs', config: RunConfig): Problem[] {
  return config[list].flatMap((entry, index) => {
    const message = problemOf(entry, config)
    return message === undefined ? [] : [{ path: `${list}[${index}]`, message }]
  })
}

function problemOf({ type, parameters = {} }: MiddlewareConfig, config: RunConfig): string | undefined {
  const form = Object.hasOwn(FORMS, type) ? FORMS[type] : undefined
  if (form === undefined) return `asks for a link that is not known; known are ${Object.keys(FORMS).join(', ')}`
  if (form.isMet(parameters, config)) return undefined
  return `asks for ${type} otherwise than the fields of the document do; ${form.instead}, and leave this entry out`
}

interface Form {
  isMet(parameters: JsonObject, config: RunConfig): boolean
  readonly instead: string
}

const always = (): Form => ({ isMet: () => true, instead: '' })

/** Parameter name to the field that says the same. A parameter that is absent asks for nothing. */
function says(fields: Partial<Record<string, keyof RunConfig>>): Form {
  const names = [...new Set(Object.values(fields))]
  return {
    // Without any of the fields the entry itself is the wish.
    isMet: (parameters, config) =>
      names.some((field) => isSet(field, config)) &&
      Object.entries(fields).every(([name, field]) => agrees(parameters[name], field, config)),
    instead: `use ${names.join(', ')}`,
  }
}

const FORMS: Readonly<Record<string, Form>> = {
  bodylimit: {
    isMet: ({ max_bytes: limit }) => limit === undefined || limit === null || limit === BODY_LIMIT_BYTES,
    instead: `the limit is always ${BODY_LIMIT_BYTES} bytes`,
  },
  'mcp-parser': always(),
  usagemetrics: always(), // nothing is counted for others or sent anywhere
  recovery: always(),
  auth: { isMet: ({ oidc_config: oidc }, config) => agrees(oidc, 'oidc_config', config), instead: 'use oidc_config' },
  origin: {
    isMet: ({ allowed_origins: origins }, config) => agrees(origins, 'allowed_origins', config),
    instead: 'use allowed_origins',
  },
  audit: says({ config_data: 'audit_config', config_path: 'audit_config_path' }),
  authorization: says({ config_data: 'authz_config', config_path: 'authz_config_path' }),
  tokenexchange: says({ token_exchange_config: 'token_exchange_config' }),
  upstreamswap: says({ config: 'upstream_swap_config' }),
  'strip-auth': {
    isMet: (_, config) => config.embedded_auth_server_config?.['disable_upstream_token_injection'] === true,
    instead: 'use embedded_auth_server_config.disable_upstream_token_injection',
  },
  'tool-filter': says({ filter_tools: 'tools_filter', tools_override: 'tools_override' }),
  'tool-call-filter': says({ filter_tools: 'tools_filter', tools_override: 'tools_override' }),
  telemetry: says({ config: 'telemetry_config' }),
  ratelimit: says({ config: 'rate_limit_config', namespace: 'rate_limit_namespace' }),
  'mutating-webhook': says({ webhooks: 'mutating_webhooks' }),
  'validating-webhook': says({ webhooks: 'validating_webhooks' }),
  awssts: says({ aws_sts_config: 'aws_sts_config' }),
  'header-forward': {
    isMet: ({ add_headers: headers }, config) =>
      config.header_forward !== undefined && (headers === undefined || jsonEqual(headers, config.header_forward.add_plaintext_headers)),
    instead: 'use header_forward',
  },
}

function isSet(field: keyof RunConfig | undefined, config: RunConfig): boolean {
  const value = field && config[field]
  return value !== undefined && !(typeof value === 'object' && Object.keys(value).length === 0)
}

/** Compared in canonical form, so that another spelling or a default that is written out is no difference. */
function agrees(asked: unknown, field: keyof RunConfig | undefined, config: RunConfig): boolean {
  if (field === undefined || asked === undefined || asked === null || asked === '') return true
  const findings: Findings = { problems: [], warnings: [] }
  const canonical: unknown = RUN_CONFIG_FIELDS[field].reader.read(asked, field, findings)
  return canonical !== undefined && findings.warnings.length === 0 && jsonEqual(canonical, config[field])
}
