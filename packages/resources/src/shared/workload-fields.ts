import { type Static, Type } from 'typebox'
import { bool, free, int32, list, obj, oneOf, opt, port, rejected, str } from '../schema/nodes.ts'
import { compact, type ProblemList } from '../schema/normalize.ts'
import { nameRef } from './references.ts'

/* Fields that several workload kinds have in common. */

export const DEFAULT_PORT = 8080

export const proxyPort = () => port('Port of the proxy and of its Service; 8080 by default.')
export const deprecatedPort = () => port('Older name of proxyPort.')

export const replicas = () => int32('Number of proxy pods. If unset, an autoscaler or kubectl scale decides.', { minimum: 0 })

export const serviceType = () => oneOf('How the Service is exposed.', ['ClusterIP', 'NodePort', 'LoadBalancer'], { default: 'ClusterIP' })

export const sessionAffinity = () =>
  oneOf('Whether the Service keeps a client on one pod. Use None together with Redis sessions.', ['ClientIP', 'None'], {
    default: 'ClientIP',
  })

export const trustProxyHeaders = () => bool('Whether to trust X-Forwarded-* headers.', { default: false })

export const trustedProxies = () =>
  list(
    'Addresses and ranges of the proxies in front. With trustProxyHeaders, the client address in audit events and for the limits of logins is the last entry of X-Forwarded-For that is none of them. Empty: the last entry.',
    str('An IP address, or a range such as 10.0.0.0/8.', { maxLength: 64, pattern: '^[0-9a-fA-F:.]+(/[0-9]{1,3})?$' }),
    { maxItems: 64, merge: 'set' },
  )

export const endpointPrefix = () => str('Path prefix in the endpoint URLs that SSE clients receive.', { maxLength: 1024 })

/** A label of a DNS name, with the underscore that some names have. */
const HOST_LABEL = '[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?'

export const allowedHosts = () =>
  list(
    'Host names by which clients may address the proxy, besides loopback names, its own address and its cluster names: the public name when a gateway in front passes it on. Requests with another Host header are rejected. Empty: any host, except on a loopback address.',
    str('A host name or address without a port; an IPv6 address in brackets.', {
      maxLength: 253,
      pattern: `^(\\[[0-9a-fA-F:.]+\\]|${HOST_LABEL}(\\.${HOST_LABEL})*)$`,
    }),
    { maxItems: 32, merge: 'set' },
  )

export const serviceAccount = (description: string) => str(description, { minLength: 1, maxLength: 253 })

export const podTemplateSpec = (container: string) =>
  free(`Additions to the pod template, as in a Deployment; the container is called ${container}. Checked by the operator.`)

export const toolConfigRef = () => nameRef('MCPToolConfig with the tools that clients see.')

export const externalAuthConfigRef = () => nameRef('MCPExternalAuthConfig for the authentication to the MCP server.')

export const authServerRef = () =>
  obj('Object with the embedded authorization server that clients log in to.', {
    kind: opt(oneOf('Kind of the object.', ['MCPExternalAuthConfig'], { default: 'MCPExternalAuthConfig' })),
    name: str('Name of the object, in the same namespace.', { minLength: 1, maxLength: 253 }),
  })

export const envList = (description: string) =>
  list(
    description,
    obj('One variable.', {
      name: str('Name of the variable.', { minLength: 1, maxLength: 1024, pattern: '^[^=\\s]+$' }),
      value: str('Value of the variable.', { maxLength: 131072 }),
    }),
    { merge: ['name'], maxItems: 1000 },
  )

export const imagePullSecrets = (description: string) =>
  list(description, obj('A Secret.', { name: opt(str('Name of the Secret.', { maxLength: 253, default: '' })) }), { maxItems: 64 })

export const resources = (container: string) =>
  obj(`Compute resources of the ${container} container.`, {
    limits: opt(amounts('Upper limits.')),
    requests: opt(amounts('Guaranteed minimum.')),
  })

const amounts = (description: string) =>
  obj(description, { cpu: opt(quantity('Processor time, such as 500m.')), memory: opt(quantity('Memory, such as 128Mi.')) })

/** A Kubernetes quantity that is not negative; `cpu: 1` may be written without quotes. */
export const quantity = (description: string) =>
  Type.Unsafe<number | string>({
    description,
    'x-kubernetes-int-or-string': true,
    minimum: 0,
    maxLength: 32,
    pattern: '^([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$',
  })

/** References to kinds that are not built, and what to use instead. */
const UNSUPPORTED_REFS = {
  oidcConfigRef: 'use oidcConfig',
  authzConfigRef: 'use authzConfig',
  telemetryConfigRef: 'use telemetry',
  webhookConfigRef: 'there are no webhooks; use authzConfig to decide which calls are allowed',
} as const

/** They protect or observe something, so they are refused and never pruned. */
export const rejectedRefs = () => ({
  oidcConfigRef: opt(rejected(UNSUPPORTED_REFS.oidcConfigRef)),
  authzConfigRef: opt(rejected(UNSUPPORTED_REFS.authzConfigRef)),
  telemetryConfigRef: opt(rejected(UNSUPPORTED_REFS.telemetryConfigRef)),
  webhookConfigRef: opt(rejected(UNSUPPORTED_REFS.webhookConfigRef)),
})

/** For objects that were stored before the schema refused these fields: their workload must not run unprotected. */
export function reportUnsupportedRefs(problems: ProblemList, spec: Partial<Record<keyof typeof UNSUPPORTED_REFS, unknown>>): void {
  for (const [field, instead] of Object.entries(UNSUPPORTED_REFS)) {
    if (Object.hasOwn(spec, field)) problems.add(`spec.${field}`, 'forbidden', `spec.${field} is not supported: ${instead}`)
  }
}

export type EnvVariable = Static<ReturnType<typeof envList>>[number]
export type Resources = Static<ReturnType<typeof resources>>
type Amounts = NonNullable<Resources['limits']>

export interface CanonicalAmounts {
  cpu?: string
  memory?: string
}

export interface CanonicalResources {
  limits: CanonicalAmounts
  requests: CanonicalAmounts
}

/** Quantities as text, whichever way they were written. */
export function normaliseResources(value: Resources | undefined): CanonicalResources {
  return { limits: asText(value?.limits), requests: asText(value?.requests) }
}

function asText(amounts: Amounts | undefined): CanonicalAmounts {
  const text = (quantity: number | string | undefined) => (quantity === undefined ? undefined : String(quantity))
  return compact({ cpu: text(amounts?.cpu), memory: text(amounts?.memory) })
}
