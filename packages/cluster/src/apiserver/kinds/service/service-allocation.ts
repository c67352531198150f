import { invalid as invalidField } from '@thv/kube-schema/field-problems'
import type { FieldProblem, JsonObject } from '@thv/kube-schema/kind-schema'
import type { ObjectStore } from '../../../store/object-store.ts'
import { formatFour, parseAddress } from '../../objects/ip-address.ts'
import { type Allocation, textAt } from '../../objects/served-kind.ts'
import { invalid, StatusError } from '../../objects/status-error.ts'
import { addressPool, nextNodePort, nodePortRefusal } from './address-pool.ts'
import { alignAddresses, settleFamilies } from './service-families.ts'
import { draftOf, givesNodePorts, isOpen, NONE, needsAddress, needsHealthCheck, type ServiceDraft, withDraft } from './service-spec.ts'

/**
 * Gives a Service its address and its node ports. What is given out is nowhere but in the Services themselves: all calls of the store are
 * synchronous, so no other Service takes the same in between, and a deleted Service gives back by being gone.
 */
export function allocateForService(service: JsonObject, from: Allocation): JsonObject {
  const draft = draftOf(service)
  const before = from.old === undefined ? undefined : draftOf(from.old)
  const self = { namespace: textAt(service, 'metadata', 'namespace'), name: textAt(service, 'metadata', 'name') }
  if (before !== undefined) keepGiven(draft, before)
  alignAddresses(draft, before)
  refuseIf(settleFamilies(draft, before), self.name)
  const taken = once(() => takenByOthers(from.store, self))
  giveAddress(draft, before, { taken, range: from.serviceRange, name: self.name })
  giveNodePorts(draft, before, { taken, name: self.name })
  return withDraft(service, draft)
}

/** A Service that is written again from its manifest keeps what was allocated to it. */
function keepGiven(draft: ServiceDraft, before: ServiceDraft): void {
  if (needsAddress(before) && needsAddress(draft)) {
    if (draft.clusterIP === '') draft.clusterIP = before.clusterIP
    if (draft.clusterIPs.length === 0) draft.clusterIPs = [...before.clusterIPs]
  }
  if (givesNodePorts(before) && givesNodePorts(draft)) {
    const stay = new Set(draft.ports.map(({ nodePort }) => nodePort))
    const byName = new Map(before.ports.map(({ name, nodePort }) => [name, nodePort]))
    for (const port of draft.ports) {
      const had = byName.get(port.name) ?? 0
      if (port.nodePort === 0 && !stay.has(had)) port.nodePort = had
    }
  }
  if (needsHealthCheck(before) && needsHealthCheck(draft) && draft.healthCheckNodePort === 0)
    draft.healthCheckNodePort = before.healthCheckNodePort
}

interface Taken {
  /** In dotted form. */
  readonly addresses: ReadonlySet<string>
  readonly ports: Set<number>
}

function takenByOthers(store: ObjectStore, self: { namespace: string; name: string }): Taken {
  const page = store.list({ type: 'services' })
  const addresses = new Set<string>()
  const ports = new Set<number>()
  for (const object of page === 'expired' ? [] : page.objects) {
    if (object.name === self.name && object.namespace === self.namespace) continue
    const other = draftOf(object.body)
    for (const address of other.clusterIPs) addresses.add(dotted(address))
    for (const { nodePort } of other.ports) if (nodePort > 0) ports.add(nodePort)
    if (other.healthCheckNodePort > 0) ports.add(other.healthCheckNodePort)
  }
  return { addresses, ports }
}

/** A change that needs nothing new looks at no other Service. */
function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}

function dotted(address: string): string {
  const parsed = parseAddress(address)
  return parsed?.family === 4 ? formatFour(parsed.value) : address
}

interface AddressSource {
  readonly taken: () => Taken
  readonly range: string
  readonly name: string
}

/** An address stays with a Service for its life, but for the time when it is a mere name of something outside. */
function giveAddress(draft: ServiceDraft, before: ServiceDraft | undefined, { taken, range, name }: AddressSource): void {
  const fresh = before === undefined || before.type === 'ExternalName'
  if (!fresh || !needsAddress(draft) || draft.clusterIPs[0] === NONE) return
  const pool = addressPool(range)
  const asked = draft.clusterIPs[0] ?? ''
  if (asked === '') {
    const address = pool.next(taken().addresses)
    if (address === undefined) throw exhausted('failed to allocate a serviceIP: range is full')
    draft.clusterIP = address
    draft.clusterIPs = [address]
    return
  }
  const refusal = pool.refusal(asked, taken().addresses)
  if (refusal !== undefined)
    refuseIf([invalidField('spec.clusterIPs', draft.clusterIPs, `failed to allocate IP ${asked}: ${refusal}`)], name)
}

function giveNodePorts(draft: ServiceDraft, before: ServiceDraft | undefined, { taken, name }: Omit<AddressSource, 'range'>): void {
  const had = new Set(before?.ports.map(({ nodePort }) => nodePort))
  const mine = new Set<number>()
  const ask = (port: number, index: number) => {
    if (had.has(port) || (before !== undefined && mine.has(port))) return
    const refusal = nodePortRefusal(port, new Set([...taken().ports, ...mine]))
    if (refusal !== undefined) refuseIf([invalidField(`spec.ports[${index}].nodePort`, port, refusal)], name)
  }
  const take = (): number => {
    const port = nextNodePort(new Set([...taken().ports, ...mine, ...had]))
    if (port === undefined) throw exhausted('failed to allocate a nodePort: range is full')
    return port
  }
  if (isOpen(draft)) {
    /** Ports of one number for two protocols share a node port when they are new. */
    const shared = new Map<number, number>()
    for (const [index, port] of draft.ports.entries()) {
      if (port.nodePort === 0 && !givesNodePorts(draft)) continue
      const twin = before === undefined ? shared.get(port.port) : undefined
      if (twin !== undefined && (port.nodePort === 0 || port.nodePort === twin)) port.nodePort = twin
      else {
        const asked = before === undefined && twin === undefined ? requested(draft, port.port) : port.nodePort
        if (asked !== 0) ask(asked, index)
        port.nodePort = asked === 0 ? take() : asked
        if (!shared.has(port.port)) shared.set(port.port, port.nodePort)
      }
      mine.add(port.nodePort)
    }
  }
  if (!needsHealthCheck(draft) || (before !== undefined && needsHealthCheck(before))) return
  if (draft.healthCheckNodePort === 0) draft.healthCheckNodePort = take()
  else {
    const refusal = nodePortRefusal(draft.healthCheckNodePort, new Set([...taken().ports, ...mine]))
    if (refusal !== undefined) throw exhausted(`failed to allocate requested HealthCheck NodePort ${draft.healthCheckNodePort}: ${refusal}`)
  }
}

/** The node port that is asked for by any of the ports of a number. */
function requested({ ports }: ServiceDraft, number: number): number {
  return ports.find(({ port, nodePort }) => port === number && nodePort !== 0)?.nodePort ?? 0
}

const SERVICE = { group: '', kind: 'Service', plural: 'services' }

function refuseIf(problems: readonly FieldProblem[], name: string): void {
  if (problems.length > 0) throw invalid(SERVICE, name, problems)
}

function exhausted(why: string): StatusError {
  const message = `Internal error occurred: ${why}`
  return new StatusError({ code: 500, reason: 'InternalError', message, details: { causes: [{ message: why }] } })
}
