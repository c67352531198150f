import { type CelRule, sameIfBoth } from '../../schema/cel.ts'
import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf } from '../../schema/kind-definition.ts'
import { bool, nameOrRef, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { caBundleRef } from '../../shared/ca-bundle-ref.ts'
import { headerForward, noAuthorizationBesideExternalAuth } from '../../shared/header-forward.ts'
import { nameRef } from '../../shared/references.ts'
import { MCPServerEntryCondition } from './constants.ts'

/** No user name or password (they would be readable by everyone who may read the entry), no blanks, a host that is not empty. */
const REMOTE_URL_PATTERN = '^[hH][tT][tT][pP][sS]?://[^\\s/?#@\\\\]+([/?#]\\S*)?$'

const remoteUrl = (description: string) => str(description, { maxLength: 2048, pattern: REMOTE_URL_PATTERN })

const encryptedUnlessAllowed = (field: string): CelRule => ({
  rule: `!has(self.${field}) || (has(self.insecureAllowHTTP) && self.insecureAllowHTTP) || !self.${field}.lowerAscii().startsWith('http://')`,
  message: 'must begin with https://; for a server without TLS set insecureAllowHTTP: true',
  fieldPath: `.${field}`,
})

const spec = obj(
  'A remote MCP server and how to reach it.',
  {
    remoteUrl: opt(remoteUrl('URL of the MCP endpoint.')),
    remoteURL: opt(remoteUrl('Another spelling of remoteUrl.')),
    transport: oneOf('Transport of the server.', ['streamable-http', 'sse']),
    groupRef: nameOrRef('The MCPGroup that the entry belongs to: its name or {name}.'),
    externalAuthConfigRef: opt(nameRef('The MCPExternalAuthConfig for requests to the server. Without it they carry no credentials.')),
    headerForward: opt(headerForward()),
    caBundleRef: opt(caBundleRef()),
    insecureAllowHTTP: opt(bool('Whether the URL may begin with http://.', { default: false })),
    allowPrivateEndpoint: opt(bool('Whether the server may have a private address where the operator denies those.', { default: false })),
  },
  {
    rules: [
      {
        rule: 'has(self.remoteUrl) || has(self.remoteURL)',
        message: 'remoteUrl must be set',
        reason: 'FieldValueRequired',
        fieldPath: '.remoteUrl',
      },
      sameIfBoth('remoteUrl', 'remoteURL'),
      encryptedUnlessAllowed('remoteUrl'),
      encryptedUnlessAllowed('remoteURL'),
      noAuthorizationBesideExternalAuth,
    ],
  },
)

const status = obj('Validation result of the entry.', {
  observedGeneration: opt(observedGeneration()),
  phase: opt(oneOf('Ready once all references were found valid.', ['Pending', 'Ready', 'Failed'], { default: 'Pending' })),
  group: opt(str('Name of the MCPGroup, whichever way groupRef is spelled.')),
  conditions: opt(conditions()),
})

export const mcpServerEntry = {
  kind: 'MCPServerEntry',
  plural: 'mcpserverentries',
  singular: 'mcpserverentry',
  shortNames: ['mcpentry'],
  description: 'A remote MCP server that a VirtualMCPServer reaches directly. Creates no workload.',
  spec,
  specRequired: true,
  status,
  columns: [
    { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Pending, Ready or Failed.' },
    { name: 'Transport', type: 'string', jsonPath: '.spec.transport', description: 'Transport of the remote server.' },
    { name: 'Remote URL', type: 'string', jsonPath: ".spec['remoteUrl','remoteURL']", description: 'URL of the remote server.' },
    { name: 'Group', type: 'string', jsonPath: '.status.group', description: 'The MCPGroup it belongs to.' },
    conditionColumn('Ready', MCPServerEntryCondition.Ready),
    AGE_COLUMN,
  ],
} as const

export type MCPServerEntry = ObjectOf<typeof mcpServerEntry>
export const mcpServerEntryType = resourceTypeOf(mcpServerEntry)
