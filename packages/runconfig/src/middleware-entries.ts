import { jsonEqual } from '@thv/kernel/json'
import type { Findings } from './field.ts'
import type { RunConfig } from './run-config.ts'
import { RUN_CONFIG_FIELDS } from './run-config-fields.ts'
import type { JsonObject } from './value-readers.ts'

/** The fixed limit of a request body. */
export const BODY_LIMIT_BYTES = 8_388_608

/**
 * Judges an entry of `middleware_configs`. The pipeline is made from the typed fields alone, so an entry is accepted when it says the
 * same as they do, or asks for what is always there.
 */
export interface EntryCheck {
  /** The `type` of its entries. */
  readonly types: readonly string[]
  isMet(parameters: JsonObject, config: RunConfig): boolean
  /** The advice for an entry that is not met. */
  readonly instead: string
}

export function alwaysMet(type: string): EntryCheck {
  return { types: [type], isMet: () => true, instead: '' }
}

/** Each parameter must equal a field. An absent parameter asks for nothing, but at least one of the fields must be set. */
export function sameAsFields(types: readonly string[], fields: Partial<Record<string, keyof RunConfig>>): EntryCheck {
  const names = [...new Set(Object.values(fields))]
  return {
    types,
    isMet: (parameters, config) =>
      names.some((field) => isSet(field, config)) &&
      Object.entries(fields).every(([name, field]) => agrees(parameters[name], field, config)),
    instead: `use ${names.join(', ')}`,
  }
}

/** The parameter named like the field must equal it; an entry without the parameter is always met. */
export function optionalField(type: string, field: 'oidc_config' | 'allowed_origins'): EntryCheck {
  return { types: [type], isMet: (parameters, config) => agrees(parameters[field], field, config), instead: `use ${field}` }
}

export const bodyLimitMet: EntryCheck = {
  types: ['bodylimit'],
  isMet: ({ max_bytes: limit }) => limit === undefined || limit === null || limit === BODY_LIMIT_BYTES,
  instead: `the limit is always ${BODY_LIMIT_BYTES} bytes`,
}

export const stripAuthMet: EntryCheck = {
  types: ['strip-auth'],
  isMet: (_, config) => config.embedded_auth_server_config?.disable_upstream_token_injection === true,
  instead: 'use embedded_auth_server_config.disable_upstream_token_injection',
}

export const headerForwardMet: EntryCheck = {
  types: ['header-forward'],
  isMet: ({ add_headers: headers }, config) =>
    config.header_forward !== undefined && (headers === undefined || jsonEqual(headers, config.header_forward.add_plaintext_headers)),
  instead: 'use header_forward',
}

function isSet(field: keyof RunConfig | undefined, config: RunConfig): boolean {
  const value = field && config[field]
  return value !== undefined && !(typeof value === 'object' && Object.keys(value).length === 0)
}

/** Compares canonical forms, so that another spelling or a written-out default makes no difference. */
function agrees(asked: unknown, field: keyof RunConfig | undefined, config: RunConfig): boolean {
  if (field === undefined || asked === undefined || asked === null || asked === '') return true
  const findings: Findings = { problems: [], warnings: [] }
  const canonical: unknown = RUN_CONFIG_FIELDS[field].reader.read(asked, field, findings)
  return canonical !== undefined && findings.warnings.length === 0 && jsonEqual(canonical, config[field])
}
