import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkServerDocument } from '../server-document.ts'
import { serverNameProblem } from '../server-name.ts'
import { discover } from './discover.ts'
import { Discovery, type DiscoveryResult } from './discovery.ts'
import type { ExportedEntry } from './entry/exported-entry.ts'
import { knownServers, noKnownServers } from './entry/known-servers.ts'
import type { ClusterObjects } from './objects/cluster-objects.ts'
import type { ExportOptions } from './objects/export-options.ts'
import { resourceKinds } from './objects/mcp-resource.ts'
import {
  accepted,
  annotation,
  clusterObjects,
  exportWorld,
  gateway,
  grant,
  httpRoute,
  listener,
  type Manifest,
  mcp,
  proxyService,
} from './testing/export-world.ts'

const known = knownServers([
  [
    {
      name: 'io.github.stacklok/github',
      version: '1.2.0',
      text: JSON.stringify({
        name: 'io.github.stacklok/github',
        description: 'GitHub',
        version: '1.2.0',
        packages: [{ registryType: 'oci', identifier: 'ghcr.io/x/github:1', transport: { type: 'stdio' } }],
      }),
      tags: [],
    },
  ],
])

const NAMES = ['a', 'a-b', 'b', 'a-mcpserver', 'a-g1']
const NAMESPACES = ['one', 'two']
const HOSTS = ['x.co', '*.co', 'y.x.co', '*.x.co', 'any']
const URLS = ['https://d.co/x', 'not a url', '', 'http://d.co:8080/', 'https://*.d.co/', undefined]

const annotations = fc.record(
  {
    [annotation('registry-export')]: fc.constantFrom('true', 'True', 'false'),
    [annotation('registry-url')]: fc.constantFrom(...URLS.filter((url) => url !== undefined)),
    [annotation('registry-description')]: fc.oneof(fc.string({ maxLength: 200 }), fc.constant('D')),
    [annotation('registry-version')]: fc.constantFrom('2.0.0', 'x'),
    [annotation('authz-claims')]: fc.constantFrom('{"team":"x"}', '5'),
  },
  { requiredKeys: [] },
)

const resource = fc
  .record({
    kind: fc.constantFrom(...resourceKinds),
    name: fc.constantFrom(...NAMES),
    namespace: fc.constantFrom(...NAMESPACES),
    image: fc.constantFrom('ghcr.io/x/github:1', 'other'),
    transport: fc.constantFrom('stdio', 'sse', 'streamable-http', 'nonsense'),
    annotations,
  })
  .map(({ kind, name, namespace, image, transport, annotations: given }) => {
    const object = mcp(kind, name, { image, transport }, namespace)
    object.metadata.annotations = given
    return object
  })

const service = fc
  .record({
    kind: fc.constantFrom(...resourceKinds),
    name: fc.constantFrom(...NAMES),
    namespace: fc.constantFrom(...NAMESPACES),
    bypass: fc.boolean(),
  })
  .map(({ kind, name, namespace, bypass }) => {
    const object = proxyService(kind, name, namespace)
    if (bypass) object.spec.selector = { app: name, 'toolhive-basename': name }
    return object
  })

const gatewayObject = fc
  .record({
    name: fc.constantFrom('g1', 'g2'),
    namespace: fc.constantFrom(...NAMESPACES),
    hostname: fc.option(fc.constantFrom(...HOSTS), { nil: undefined }),
    port: fc.constantFrom(80, 443, 8443),
    protocol: fc.constantFrom('http', 'https'),
    address: fc.constantFrom('lb.co', '*.lb.co', undefined),
  })
  .map(({ name, namespace, hostname, port, protocol, address }) => {
    const object = gateway(name, namespace)
    object.spec.listeners = [listener(protocol, port, hostname === undefined ? {} : { hostname })]
    object.status.addresses = address === undefined ? [] : [{ type: 'Hostname', value: address }]
    return object
  })

const route = fc
  .record({
    name: fc.constantFrom('r1', 'r2', 'r3'),
    namespace: fc.constantFrom(...NAMESPACES),
    gateway: fc.constantFrom('g1', 'g2'),
    gatewayNamespace: fc.constantFrom(...NAMESPACES),
    hostnames: fc.uniqueArray(fc.constantFrom(...HOSTS), { maxLength: 3 }),
    backends: fc.array(fc.tuple(fc.constantFrom(...resourceKinds), fc.constantFrom(...NAMES), fc.constantFrom(...NAMESPACES)), {
      maxLength: 3,
    }),
    accepts: fc.boolean(),
    opted: fc.constantFrom('true', 'false'),
  })
  .map((given) => {
    const object = httpRoute(given.name, 'x')
    const parentRef = { name: given.gateway, namespace: given.gatewayNamespace }
    object.metadata.namespace = given.namespace
    object.metadata.annotations = { [annotation('registry-export')]: given.opted }
    object.spec.parentRefs = [parentRef]
    object.spec.hostnames = given.hostnames
    object.spec.rules = given.backends.map(([kind, name, namespace], i) => ({
      matches: [{ path: { type: 'PathPrefix', value: `/p${i}` } }],
      backendRefs: [{ name: proxyService(kind, name).metadata.name, namespace, port: 8080 }],
    }))
    object.status.parents = [accepted(parentRef, { Accepted: given.accepts ? 'True' : 'False' })]
    return object
  })

const grantObject = fc
  .record({
    name: fc.constantFrom('a', 'b'),
    namespace: fc.constantFrom(...NAMESPACES),
    from: fc.constantFrom(...NAMESPACES),
    kind: fc.constantFrom('Service', 'Gateway'),
  })
  .map(({ name, namespace, from, kind }) => {
    const object = grant(name, { group: kind === 'Service' ? '' : 'gateway.networking.k8s.io', kind }, namespace)
    object.spec.from[0].namespace = from
    return object
  })

const object = fc.oneof({ weight: 3, arbitrary: resource }, service, gatewayObject, { weight: 2, arbitrary: route }, grantObject)
const change = fc.record({ object, gone: fc.boolean() })
const options: fc.Arbitrary<ExportOptions> = fc.record({
  mode: fc.constantFrom('server', 'operator'),
  crossNamespaceGateway: fc.constantFrom('referenceGrant', 'allowedRoutes', 'accepted'),
})

/** Texts that are put together at a look are no members by themselves. */
const withTexts = ({ entries, warnings }: DiscoveryResult) => ({
  entries: entries.map((entry) => ({ ...entry, text: entry.text })),
  warnings,
})
const nameOf = ({ name, version }: ExportedEntry) => `${name} ${version}`
const keyOf = ({ kind, metadata }: Manifest) => `${kind}/${metadata.namespace}/${metadata.name}`

function read(objects: readonly Manifest[]): ClusterObjects {
  const of = (kind: string) => objects.filter((each) => each.kind === kind)
  return clusterObjects({
    ...exportWorld(),
    servers: of('MCPServer'),
    proxies: of('MCPRemoteProxy'),
    virtuals: of('VirtualMCPServer'),
    services: of('Service'),
    routes: of('HTTPRoute'),
    gateways: of('Gateway'),
    grants: of('ReferenceGrant'),
  })
}

/** One change, as a watch would bring it: a route that no longer opts in is gone. */
function apply(discovery: Discovery, manifest: Manifest, gone: boolean): void {
  const { namespace, name } = manifest.metadata
  const slim = gone ? read([]) : read([manifest])
  if (manifest.kind === 'Service') {
    if (gone) discovery.deleteService(namespace, name)
    for (const each of slim.services) discovery.setService(each)
  } else if (manifest.kind === 'Gateway') {
    if (gone) discovery.deleteGateway(namespace, name)
    for (const each of slim.gateways) discovery.setGateway(each)
  } else if (manifest.kind === 'HTTPRoute') {
    if (slim.routes.length === 0) discovery.deleteRoute(namespace, name)
    for (const each of slim.routes) discovery.setRoute(each)
  } else if (manifest.kind === 'ReferenceGrant') {
    if (gone) discovery.deleteGrant(namespace, name)
    for (const each of slim.grants) discovery.setGrant(each)
  } else {
    if (gone) discovery.deleteResource({ kind: manifest.kind, namespace, name })
    for (const each of slim.resources) discovery.setResource(each)
  }
}

describe('discovery', () => {
  it('gives the same result for single changes in any order as for the whole', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 40 }), options, fc.boolean(), (changes, given, withKnown) => {
        const discovery = new Discovery(given)
        const present = new Map<string, Manifest>()
        for (const [i, { object: manifest, gone }] of changes.entries()) {
          apply(discovery, manifest, gone)
          if (gone) present.delete(keyOf(manifest))
          else present.set(keyOf(manifest), manifest)
          if (withKnown && i === 5) discovery.setKnownServers(known)
          if (i % 3 === 0) discovery.result()
        }
        const whole = discover(read([...present.values()]), given, withKnown && changes.length > 5 ? known : noKnownServers)
        expect(withTexts(discovery.result())).toEqual(withTexts(whole))
      }),
    )
  })

  it('gives the changes since it was read: applied one after the other they are what a whole computation gives, and the list of warnings is another only when it says something else', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(change, fc.boolean()), { maxLength: 40 }), options, fc.boolean(), (changes, given, withKnown) => {
        const discovery = new Discovery(given)
        const present = new Map<string, Manifest>()
        const held = new Map<string, ExportedEntry>()
        let servers = noKnownServers
        let warnings = discovery.warnings
        const take = () => {
          discovery.settle()
          const whole = discover(read([...present.values()]), given, servers)
          const { entries, gone, replaced } = discovery.changes
          for (const old of [...gone, ...replaced]) {
            expect(held.get(nameOf(old))).toEqual({ ...old, text: old.text })
            held.delete(nameOf(old))
          }
          for (const entry of entries) {
            expect(held.has(nameOf(entry))).toBe(false)
            held.set(nameOf(entry), { ...entry, text: entry.text })
          }
          expect(new Map([...held].sort())).toEqual(
            new Map(
              withTexts(whole)
                .entries.map((entry) => [nameOf(entry), entry] as const)
                .sort(),
            ),
          )
          expect(discovery.warnings).toEqual(whole.warnings)
          if (discovery.warnings !== warnings) warnings = discovery.warnings
          discovery.markRead()
          expect(discovery.changes).toEqual({ entries: [], gone: [], replaced: [] })
          discovery.settle()
          expect(discovery.warnings).toBe(warnings)
        }
        for (const [i, [{ object: manifest, gone }, isRead]] of changes.entries()) {
          apply(discovery, manifest, gone)
          if (gone) present.delete(keyOf(manifest))
          else present.set(keyOf(manifest), manifest)
          if (withKnown && i === 5) {
            servers = known
            discovery.setKnownServers(known)
          }
          if (isRead) take()
        }
        take()
      }),
    )
  })

  it('does not depend on the order of the objects', () => {
    const world = fc.uniqueArray(object, { selector: keyOf, maxLength: 30 })
    const shuffled = world.chain((objects) => fc.tuple(fc.constant(objects), fc.shuffledSubarray(objects, { minLength: objects.length })))
    fc.assert(
      fc.property(shuffled, options, ([objects, other], given) => {
        expect(withTexts(discover(read(other), given, known))).toEqual(withTexts(discover(read(objects), given, known)))
      }),
    )
  })

  it('makes legal names, valid documents and remotes that a client can use [000-057]', () => {
    fc.assert(
      fc.property(fc.uniqueArray(object, { selector: keyOf, maxLength: 30 }), options, (objects, given) => {
        const { entries } = discover(read(objects), given, known)
        expect(new Set(entries.map(({ name, version }) => `${name} ${version}`)).size).toBe(entries.length)
        for (const { name, text } of entries) {
          const document = JSON.parse(text) as { remotes: { type: string; url: string }[] }
          expect(serverNameProblem(name)).toBeUndefined()
          expect(checkServerDocument(document, { level: 'semantic' })).toMatchObject({ ok: true })
          expect(document.remotes.length).toBeGreaterThan(0)
          for (const { type, url } of document.remotes) {
            expect(['sse', 'streamable-http']).toContain(type)
            expect(url).not.toContain('*')
            // 8080 is the port of every backend; a direct URL may name it.
            if (!url.startsWith('http://d.co')) expect(new URL(url).port).not.toBe('8080')
          }
        }
      }),
    )
  })
})
