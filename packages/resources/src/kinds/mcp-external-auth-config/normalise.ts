import { compact, type Normalised, problemList } from '../../schema/normalize.ts'
import { type CanonicalEmbeddedAuthServer, normaliseEmbeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { type CanonicalInlineOidc, normaliseInlineOidc } from '../../shared/inline-oidc.ts'
import { type CanonicalAwsSts, normaliseAwsSts } from './aws-sts.ts'
import { type CanonicalClientCredentials, normaliseClientCredentials } from './client-credentials.ts'
import { AUTH_TYPES, type AuthType } from './constants.ts'
import type { MCPExternalAuthConfig } from './schema.ts'
import { type CanonicalTokenExchange, normaliseTokenExchange } from './token-exchange.ts'

type Spec = MCPExternalAuthConfig['spec']

/** Exactly the member named like `type` is there (none for unauthenticated), unless the problems say otherwise. */
export interface CanonicalMCPExternalAuthConfigSpec {
  type: Spec['type']
  tokenExchange?: CanonicalTokenExchange
  headerInjection?: NonNullable<Spec['headerInjection']>
  bearerToken?: NonNullable<Spec['bearerToken']>
  clientCredentials?: CanonicalClientCredentials
  embeddedAuthServer?: CanonicalEmbeddedAuthServer
  awsSts?: CanonicalAwsSts
  upstreamInject?: NonNullable<Spec['upstreamInject']>
  oidc?: CanonicalInlineOidc
}

export function normaliseMcpExternalAuthConfig({
  spec,
}: Pick<MCPExternalAuthConfig, 'spec'>): Normalised<CanonicalMCPExternalAuthConfigSpec> {
  const problems = problemList()
  if (!isAuthType(spec.type)) {
    problems.add('spec.type', 'forbidden', `spec.type ${spec.type} is not supported: use tokenExchange or upstreamInject`)
  } else if (spec.type !== 'unauthenticated' && !spec[spec.type]) {
    problems.add(`spec.${spec.type}`, 'missing', `spec.${spec.type} must be set, because spec.type is ${spec.type}`)
  }
  return {
    spec: compact({
      type: spec.type,
      tokenExchange: spec.tokenExchange && normaliseTokenExchange(problems, 'spec.tokenExchange', spec.tokenExchange),
      headerInjection: spec.headerInjection,
      bearerToken: spec.bearerToken,
      clientCredentials: spec.clientCredentials && normaliseClientCredentials(spec.clientCredentials),
      embeddedAuthServer: spec.embeddedAuthServer && normaliseEmbeddedAuthServer(spec.embeddedAuthServer),
      awsSts: spec.awsSts && normaliseAwsSts(spec.awsSts),
      upstreamInject: spec.upstreamInject,
      oidc: spec.oidc && normaliseInlineOidc(problems, 'spec.oidc', spec.oidc),
    }),
    problems: problems.all,
  }
}

function isAuthType(type: string): type is AuthType {
  return (AUTH_TYPES as readonly string[]).includes(type)
}
