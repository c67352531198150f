import { unionRules } from '../../schema/cel.ts'
import { AGE_COLUMN, conditionColumn, type ObjectOf, resourceTypeOf } from '../../schema/kind-definition.ts'
import { obj, oneOf, opt, rejected, str } from '../../schema/nodes.ts'
import { conditions, observedGeneration } from '../../schema/status-nodes.ts'
import { embeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { headerName } from '../../shared/http-header.ts'
import { inlineOidc } from '../../shared/inline-oidc.ts'
import { secretKeyRef } from '../../shared/references.ts'
import { referencingWorkloads } from '../../shared/referencing-workloads.ts'
import { awsSts } from './aws-sts.ts'
import { clientCredentials } from './client-credentials.ts'
import { AUTH_TYPES, type AuthType, MCPExternalAuthConfigCondition } from './constants.ts'
import { tokenExchange } from './token-exchange.ts'

const INSTEAD_OF_OBO = 'use type tokenExchange with a token endpoint that speaks RFC 8693 instead of obo'
const INSTEAD_OF_XAA = 'use type tokenExchange or, under a VirtualMCPServer, upstreamInject instead of xaa'

/** Types that say how clients authenticate to a proxy, so that `oidcConfig.external` may name them. */
export const INCOMING_AUTH_TYPES = ['oidc', 'embeddedAuthServer'] as const satisfies readonly AuthType[]

const spec = obj(
  'One way to authenticate.',
  {
    type: oneOf(
      'Type of authentication; the field of the same name holds its settings. unauthenticated has none.',
      [...AUTH_TYPES, 'obo', 'xaa'],
      {
        rules: [
          { rule: "self != 'obo'", message: `type obo is not supported: ${INSTEAD_OF_OBO}` },
          { rule: "self != 'xaa'", message: `type xaa is not supported: ${INSTEAD_OF_XAA}` },
        ],
      },
    ),
    tokenExchange: opt(tokenExchange()),
    headerInjection: opt(
      obj('Sends a fixed header.', {
        headerName: headerName('Name of the header.'),
        valueSecretRef: secretKeyRef('Value of the header.'),
      }),
    ),
    bearerToken: opt(obj('Sends a fixed bearer token.', { tokenSecretRef: secretKeyRef('The token.') })),
    clientCredentials: opt(clientCredentials()),
    embeddedAuthServer: opt(embeddedAuthServer('Runs an authorization server in the proxy; users log in at its upstream providers.')),
    awsSts: opt(awsSts()),
    upstreamInject: opt(
      obj("Sends the user's token of an upstream provider. Needs an embedded authorization server with that provider.", {
        providerName: str('Name of the upstream provider.', { minLength: 1, maxLength: 63 }),
      }),
    ),
    oidc: opt(inlineOidc('Accepted tokens of clients. Workloads reference the configuration in oidcConfig.external.')),
    obo: opt(rejected(INSTEAD_OF_OBO)),
    xaa: opt(rejected(INSTEAD_OF_XAA)),
  },
  {
    rules: unionRules('type', {
      tokenExchange: 'tokenExchange',
      headerInjection: 'headerInjection',
      bearerToken: 'bearerToken',
      clientCredentials: 'clientCredentials',
      embeddedAuthServer: 'embeddedAuthServer',
      awsSts: 'awsSts',
      upstreamInject: 'upstreamInject',
      oidc: 'oidc',
    }),
  },
)

const status = obj('Validation result, and the workloads that reference the configuration.', {
  observedGeneration: opt(observedGeneration()),
  configHash: opt(str('Hash of the spec. Workloads compare it to notice changes.')),
  referencingWorkloads: opt(referencingWorkloads()),
  conditions: opt(conditions()),
})

export const mcpExternalAuthConfig = {
  kind: 'MCPExternalAuthConfig',
  plural: 'mcpexternalauthconfigs',
  singular: 'mcpexternalauthconfig',
  shortNames: ['extauth', 'mcpextauth'],
  description: 'How a proxy authenticates to a backend, or how clients authenticate to a proxy. Shared by all workloads that reference it.',
  spec,
  specRequired: true,
  status,
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.spec.type', description: 'The way to authenticate.' },
    conditionColumn('Valid', MCPExternalAuthConfigCondition.Valid),
    AGE_COLUMN,
  ],
} as const

export type MCPExternalAuthConfig = ObjectOf<typeof mcpExternalAuthConfig>
export const mcpExternalAuthConfigType = resourceTypeOf(mcpExternalAuthConfig)
