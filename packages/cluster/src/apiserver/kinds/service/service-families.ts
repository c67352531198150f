import { duplicate, invalid, notSupported, required } from '@thv/kube-schema/field-problems'
import type { FieldProblem } from '@thv/kube-schema/kind-schema'
import { addressProblems, parseAddress } from '../../objects/ip-address.ts'
import { isHeadless, NONE, type ServiceDraft, sameTexts } from './service-spec.ts'

const FAMILIES = ['IPv4', 'IPv6']
const POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack']
const SINGLE = 'SingleStack'
/** The range of the platform is one of IPv4. */
const OWN_FAMILY = 'IPv4'

const IPS = 'spec.clusterIPs'
const FAMILY_LIST = 'spec.ipFamilies'
const POLICY = 'spec.ipFamilyPolicy'

/** `clusterIP` and the first of `clusterIPs` are one thing that clients of different age write. */
export function alignAddresses(draft: ServiceDraft, before?: ServiceDraft): void {
  if (before === undefined) {
    if (draft.clusterIP !== '' && draft.clusterIPs.length === 0) draft.clusterIPs = [draft.clusterIP]
    return
  }
  if (draft.clusterIPs.length === 0 && before.clusterIP === draft.clusterIP) draft.clusterIPs = [...before.clusterIPs]
  if (before.clusterIP === draft.clusterIP || !sameTexts(before.clusterIPs, draft.clusterIPs)) return
  draft.clusterIPs = draft.clusterIP === '' ? [] : [draft.clusterIP]
}

/** Fills in families and policy. Gives the problems that stop the Service from getting an address at all. */
export function settleFamilies(draft: ServiceDraft, before?: ServiceDraft): FieldProblem[] {
  if (draft.type === 'ExternalName' || isSettled(draft, before)) return []
  const selectorless = draft.clusterIP === NONE && !draft.hasSelector
  draft.policy ??= before?.policy ?? (selectorless ? 'RequireDualStack' : SINGLE)
  const wrong = familyProblems(draft)
  if (wrong.length > 0) return wrong
  const mismatched = [...policyProblems(draft, before), ...inferFamilies(draft)]
  if (mismatched.length > 0) return mismatched
  if (selectorless) {
    // Its endpoints are made by hand and may be of both, whatever the cluster has.
    if (draft.families.length === 0) draft.families = [OWN_FAMILY]
    if (draft.families.length === 1 && draft.policy !== SINGLE) draft.families.push(draft.families[0] === 'IPv4' ? 'IPv6' : 'IPv4')
    return []
  }
  const missing = missingFamilies(draft)
  if (missing.length === 0 && draft.families.length === 0) draft.families = [OWN_FAMILY]
  return missing
}

/** A Service that prefers two families keeps what it has, whatever the cluster has become. */
function isSettled(draft: ServiceDraft, before: ServiceDraft | undefined): boolean {
  if (before === undefined || draft.policy !== 'PreferDualStack' || before.policy !== 'PreferDualStack') return false
  return before.type === draft.type && sameTexts(before.clusterIPs, draft.clusterIPs) && sameTexts(before.families, draft.families)
}

/** Contradictions between addresses and families. */
export function familyProblems(draft: ServiceDraft, known: readonly string[] = []): FieldProblem[] {
  const { clusterIP, clusterIPs, families, policy, type } = draft
  if (type === 'ExternalName') return []
  const problems: FieldProblem[] = []
  if (clusterIP === '') {
    if (clusterIPs.length > 0) problems.push(invalid(IPS, clusterIPs, 'must be empty when `clusterIP` is not specified'))
  } else if (clusterIPs.length === 0) problems.push(required(IPS))
  else if (clusterIPs[0] !== clusterIP) problems.push(invalid(IPS, clusterIPs, 'first value must match `clusterIP`'))
  for (const [index, family] of families.entries()) {
    if (!FAMILIES.includes(family)) problems.push(notSupported(`${FAMILY_LIST}[${index}]`, family, FAMILIES))
    if (families.indexOf(family) < index) problems.push(duplicate(`${FAMILY_LIST}[${index}]`, family))
  }
  if (policy !== undefined && !POLICIES.includes(policy)) problems.push(notSupported(POLICY, policy, POLICIES))
  const malformed = malformedAddresses(clusterIPs, known)
  problems.push(...malformed)
  if (clusterIPs.length > 2) problems.push(invalid(IPS, clusterIPs, 'may only hold up to 2 values'))
  if (malformed.length > 0) return problems
  const distinct = new Set(clusterIPs.map(familyOf))
  if (clusterIPs.length > 1 && distinct.size < 2)
    problems.push(invalid(IPS, clusterIPs, 'may specify no more than one IP for each IP family'))
  if (isHeadless(draft)) return problems
  for (const [index, address] of clusterIPs.entries()) {
    const family = families[index]
    if (family === undefined || !FAMILIES.includes(family) || familyOf(address) === family) continue
    const why = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``
    problems.push(invalid(`${IPS}[${index}]`, address, why))
  }
  return problems
}

function malformedAddresses(addresses: readonly string[], known: readonly string[]): FieldProblem[] {
  return addresses.flatMap((address, index) => {
    if (index === 0 && address === NONE) {
      return addresses.length > 1 ? [invalid(IPS, addresses, "'None' must be the first and only value")] : []
    }
    return known.includes(address) ? [] : addressProblems(`${IPS}[${index}]`, address)
  })
}

function policyProblems(draft: ServiceDraft, before: ServiceDraft | undefined): FieldProblem[] {
  const policy = draft.policy ?? ''
  const problems: FieldProblem[] = []
  const fewer = (now: readonly string[], then: readonly string[] = []) => now.length > 0 && now.length < then.length
  if (before !== undefined && policy === SINGLE) {
    // The policy alone says that the second of each may go.
    if (sameTexts(before.clusterIPs, draft.clusterIPs)) draft.clusterIPs = draft.clusterIPs.slice(0, 1)
    if (sameTexts(before.families, draft.families)) draft.families = draft.families.slice(0, 1)
  } else {
    if (fewer(draft.clusterIPs, before?.clusterIPs))
      problems.push(invalid(POLICY, policy, "must be 'SingleStack' to release the secondary cluster IP"))
    if (fewer(draft.families, before?.families))
      problems.push(invalid(POLICY, policy, "must be 'SingleStack' to release the secondary IP family"))
  }
  if (policy !== SINGLE) return problems
  const two = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
  if (draft.clusterIPs.length === 2) problems.push(invalid(POLICY, policy, `${two} cluster IPs are specified`))
  if (draft.families.length === 2) problems.push(invalid(POLICY, policy, `${two} IP families are specified`))
  return problems
}

/** From the addresses that were asked for. */
function inferFamilies(draft: ServiceDraft): FieldProblem[] {
  const problems: FieldProblem[] = []
  for (const [index, address] of draft.clusterIPs.entries()) {
    if (address === NONE) break
    if (index < draft.families.length) continue
    const family = familyOf(address)
    if (family === OWN_FAMILY) draft.families.push(family)
    else problems.push(invalid(`${IPS}[${index}]`, draft.clusterIPs, `${family} is not configured on this cluster`))
  }
  return problems
}

function missingFamilies({ policy, families }: ServiceDraft): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (policy === 'RequireDualStack') problems.push(invalid(POLICY, policy, 'this cluster is not configured for dual-stack services'))
  for (const [index, family] of families.entries())
    if (family !== OWN_FAMILY) problems.push(invalid(`${FAMILY_LIST}[${index}]`, family, 'not configured on this cluster'))
  return problems
}

function familyOf(address: string): string {
  const family = parseAddress(address)?.family
  return family === undefined ? 'unknown' : `IPv${family}`
}
