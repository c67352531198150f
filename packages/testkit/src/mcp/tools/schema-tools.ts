import type { Tool } from '../features/call.ts'
import { jsonResult } from '../features/content.ts'
import { BOOLEAN, INTEGER, inputs, STRING } from './arguments.ts'

/** Tools whose point is their input schema: proxies must hand it on unchanged. */
export const SCHEMA_TOOLS: readonly Tool[] = [
  {
    name: 'json_schema_2020_12_tool',
    description: 'Its input schema uses the keywords of JSON Schema 2020-12',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: { $anchor: 'addressDef', type: 'object', properties: { street: STRING, city: STRING } },
      },
      properties: {
        name: STRING,
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: STRING,
        email: STRING,
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      anyOf: [{ required: ['name'] }, { required: ['address'] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, this object is never awaited
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    run: ({ args }) => jsonResult({ received: args }),
  },
  {
    name: 'region_query',
    description: 'Mirrors arguments into request headers in the modern revision',
    inputSchema: inputs({
      region: { ...STRING, 'x-mcp-header': 'Region' },
      limit: { ...INTEGER, 'x-mcp-header': 'Limit' },
      dry_run: { ...BOOLEAN, 'x-mcp-header': 'Dry-Run' },
      where: { type: 'object', properties: { tenant: { ...STRING, 'x-mcp-header': 'Tenant' } } },
      note: STRING,
    }),
    run: ({ args, origin }) => jsonResult({ received: args, headers: paramHeaders(origin.headers ?? {}) }),
  },
]

/** Listed only on request: a client of the modern HTTP revision must drop this tool and keep the others. */
export const ODD_TOOLS: readonly Tool[] = [
  {
    name: 'zz_invalid_header',
    description: 'Its header annotation is not a valid token',
    inputSchema: inputs({ value: { ...STRING, 'x-mcp-header': 'not a token' } }),
    run: ({ args }) => jsonResult({ received: args }),
  },
]

function paramHeaders(headers: NodeJS.Dict<string | string[]>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-param-')))
}
