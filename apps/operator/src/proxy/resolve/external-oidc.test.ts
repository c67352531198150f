import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { describe, expect, it } from 'vitest'
import { planMcpRemoteProxy } from '../../controllers/mcp-remote-proxy/plan.ts'
import { planMcpServer } from '../../controllers/mcp-server/plan.ts'
import type { WorkloadPlan } from '../../deployment/deployment-plan.ts'
import type { Lookup } from '../../references/lookup.ts'
import { COMPANY_CA, planFacts } from '../../testing/fixture-namespace.ts'
import { snapshot } from './testing/snapshot.ts'

type AuthSpec = MCPExternalAuthConfig['spec']
type Spec = Partial<MCPServer['spec'] & MCPRemoteProxy['spec']>

const metadata = { name: 'x', namespace: 'team', uid: 'uid-x', generation: 1 }
const RESOURCE = 'https://mcp.example.com/mcp'
const secretRef = { name: 'idp', key: 'secret' }
const external = { oidcConfig: { type: 'external', external: { name: 'login' } } } as const

const embedded: AuthSpec = {
  type: 'embeddedAuthServer',
  embeddedAuthServer: {
    issuer: 'https://mcp.example.com',
    upstreamProviders: [{ name: 'corporate', type: 'oidc', oidcConfig: { issuerUrl: 'https://idp.example.com', clientId: 'c' } }],
    baselineClientScopes: ['tools'],
  },
}

function lookupOf(configs: Readonly<Record<string, AuthSpec>>): Lookup {
  return {
    ...snapshot({ configMaps: { 'company-ca': { 'ca.crt': COMPANY_CA } }, secrets: { idp: ['secret'] } }),
    externalAuthConfig: (name) => {
      const spec = configs[name]
      return spec && ({ metadata: { name, namespace: 'team' }, spec } as MCPExternalAuthConfig)
    },
  }
}

function plansOf(spec: Spec, configs: Readonly<Record<string, AuthSpec>>): [string, WorkloadPlan][] {
  const facts = { ...planFacts(), lookup: lookupOf(configs) }
  const server = { metadata, spec: { image: 'i', transport: 'streamable-http', ...spec } } as MCPServer
  const proxy = { metadata, spec: { remoteUrl: 'https://r.example.com', ...spec } } as MCPRemoteProxy
  return [
    ['MCPServer', planMcpServer({ ...facts, server })],
    ['MCPRemoteProxy', planMcpRemoteProxy({ ...facts, proxy })],
  ]
}

function runConfigOf({ children, blockers }: WorkloadPlan): Record<string, unknown> {
  const map = children.find(({ kind }) => kind === 'ConfigMap')?.object as { data: Record<string, string> } | undefined
  if (map === undefined) throw new Error(`blocked: ${JSON.stringify(blockers)}`)
  return JSON.parse(Object.values(map.data)[0] ?? '')
}

const OUTGOING: readonly AuthSpec[] = [
  { type: 'unauthenticated' },
  { type: 'bearerToken', bearerToken: { tokenSecretRef: secretRef } },
  { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: secretRef } },
  { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'a' } },
  { type: 'awsSts', awsSts: { region: 'eu-west-1', fallbackRoleArn: 'arn:aws:iam::123456789012:role/r' } },
  { type: 'upstreamInject', upstreamInject: { providerName: 'corporate' } },
]

describe('oidcConfig.type: external', () => {
  it.each(OUTGOING)('never runs a workload that names a config of type $type [002-099]', (login) => {
    for (const [, plan] of plansOf(external, { login })) {
      expect(plan.children).toEqual([])
      expect(plan.blockers).toMatchObject([{ condition: 'ConfigurationValid', reason: 'NotIncomingAuth' }])
      expect(plan.blockers[0]?.message).toMatch(new RegExp(`spec.oidcConfig.external.*login.*${login.type}.*externalAuthConfigRef`))
    }
  })

  it('takes every member of a config of type oidc, and the resource URL of the workload [002-098]', () => {
    const login: AuthSpec = {
      type: 'oidc',
      oidc: {
        issuer: 'https://idp.example.com/',
        audience: 'tickets',
        jwksUrl: 'https://idp.example.com/keys',
        introspectionUrl: 'https://idp.example.com/introspect',
        clientId: 'toolhive',
        clientSecretRef: secretRef,
        caBundleRef: { configMapRef: { name: 'company-ca', key: 'ca.crt' } },
        jwksAllowPrivateIP: true,
        scopes: ['openid', 'tickets'],
      },
    }
    const oidcConfig = { ...external.oidcConfig, resourceUrl: RESOURCE }
    for (const [, plan] of plansOf({ oidcConfig }, { login })) {
      expect(runConfigOf(plan)['oidc_config']).toEqual({
        issuer: 'https://idp.example.com/',
        audience: 'tickets',
        jwks_url: 'https://idp.example.com/keys',
        introspection_url: 'https://idp.example.com/introspect',
        client_id: 'toolhive',
        ca_cert_path: '/config/certs/company-ca/ca.crt',
        jwks_allow_private_ip: true,
        allow_private_ip: false,
        insecure_allow_http: false,
        resource_url: RESOURCE,
        scopes: ['openid', 'tickets'],
        this_cluster: false,
        forward_token: false,
      })
      expect(plan.unsupported).toEqual([])
      expect(JSON.stringify(plan.children)).toContain('"secretKeyRef":{"name":"idp","key":"secret"}')
      expect(plan.conditions).toContainEqual(expect.objectContaining({ type: 'CABundleRefValidated', status: 'True' }))
    }
  })

  it('says on the workload what is wrong with the config', () => {
    const oidc = { issuer: 'https://idp.example.com' }
    const cases: [AuthSpec | undefined, string, string, RegExp][] = [
      [undefined, 'ConfigurationValid', 'ExternalAuthConfigNotFound', /spec.oidcConfig.external names MCPExternalAuthConfig login/],
      [
        { type: 'oidc', oidc: { ...oidc, clientSecretRef: { name: 'gone', key: 'k' } } },
        'ConfigurationValid',
        'SecretNotFound',
        /login.*spec.oidc.clientSecretRef names Secret gone/,
      ],
      [{ type: 'oidc', oidc: { issuer: 'http://idp.example.com' } }, 'ConfigurationValid', 'ValidationFailed', /login.*spec.oidc.issuer/],
      [{ type: 'oidc' } as AuthSpec, 'ConfigurationValid', 'ValidationFailed', /spec.oidc must be set/],
      [
        { type: 'oidc', oidc: { ...oidc, caBundleRef: { configMapRef: { name: 'gone' } } } },
        'CABundleRefValidated',
        'CABundleRefNotFound',
        /spec.oidc.caBundleRef of MCPExternalAuthConfig login.*ConfigMap gone/,
      ],
    ]
    for (const [login, condition, reason, says] of cases) {
      for (const [, plan] of plansOf(external, login ? { login } : {})) {
        expect(plan.children).toEqual([])
        expect(plan.blockers).toMatchObject([{ condition, reason }])
        expect(plan.blockers[0]?.message).toMatch(says)
      }
    }
  })

  it('means authServerRef and inline OIDC with the issuer of an embedded server', () => {
    const oidcConfig = { ...external.oidcConfig, resourceUrl: RESOURCE }
    const inline = { issuer: 'https://mcp.example.com', audience: RESOURCE, scopes: ['openid', 'tools'] }
    const long = plansOf(
      { oidcConfig: { type: 'inline', resourceUrl: RESOURCE, inline }, authServerRef: { name: 'login' } },
      { login: embedded },
    )
    for (const more of [{}, { authServerRef: { name: 'login' } }]) {
      const short = plansOf({ oidcConfig, ...more }, { login: embedded })
      short.forEach(([kind, plan], index) => {
        const [, same] = long[index] ?? ['', plan]
        expect([kind, runConfigOf(plan)]).toEqual([kind, runConfigOf(same)])
        expect(plan.conditions).toContainEqual(expect.objectContaining({ type: 'AuthServerRefValidated', status: 'True' }))
      })
    }
  })

  it('takes the address of the Service for the audience where no resource URL is set', () => {
    const [server] = plansOf(external, { login: embedded })
    expect(server && runConfigOf(server[1])['oidc_config']).toMatchObject({
      audience: 'http://mcp-x-proxy.team.svc.cluster.local:8080',
    })
  })

  it('refuses an authServerRef to another config than the embedded server', () => {
    for (const [, plan] of plansOf({ ...external, authServerRef: { name: 'other' } }, { login: embedded, other: embedded })) {
      expect(plan.children).toEqual([])
      expect(plan.blockers).toMatchObject([{ condition: 'AuthServerRefValidated', reason: 'AuthServerRefInvalidConfig' }])
      expect(plan.blockers[0]?.message).toMatch(/spec.authServerRef names other.*login/)
    }
  })

  it('stands beside an externalAuthConfigRef to another config', () => {
    const login: AuthSpec = { type: 'oidc', oidc: { issuer: 'https://idp.example.com' } }
    const out: AuthSpec = { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: secretRef } }
    for (const [, plan] of plansOf({ ...external, externalAuthConfigRef: { name: 'out' } }, { login, out })) {
      expect(runConfigOf(plan)).toMatchObject({ oidc_config: { issuer: 'https://idp.example.com' }, header_injection_config: {} })
    }
  })

  it('is the only field that may name a config of type oidc', () => {
    const login: AuthSpec = { type: 'oidc', oidc: { issuer: 'https://idp.example.com' } }
    for (const [, plan] of plansOf({ externalAuthConfigRef: { name: 'login' } }, { login })) {
      expect(plan.children).toEqual([])
      expect(plan.blockers).toMatchObject([{ condition: 'ExternalAuthConfigValidated', reason: 'InvalidConfig' }])
      expect(plan.blockers[0]?.message).toContain('oidcConfig.external')
    }
  })

  it('stops a proxy that runs open when the spec begins to ask for it', () => {
    const facts = { ...planFacts(), lookup: lookupOf({ login: { type: 'unauthenticated' } }) }
    const live = { runConfig: JSON.stringify({ name: 'x' }), deployment: { metadata } as never }
    const server = { metadata, spec: { image: 'i', ...external } } as MCPServer
    expect(planMcpServer({ ...facts, live, server }).stopsWhatRuns).toBe(true)
  })
})
