import { tryParseDuration } from '@thv/kernel/duration'
import type { CanonicalEmbeddedAuthServer } from '../../shared/auth-server/embedded-auth-server.ts'
import { urlProblems } from './url-problems.ts'

type TrustedIssuer = CanonicalEmbeddedAuthServer['trustedIssuers'][number]

/** Rules of an issuer whose tokens the embedded authorization server takes in exchange. Pure. */
export function trustedIssuerProblems(at: string, issuer: TrustedIssuer): string[] {
  const rules = { allowHttp: issuer.insecureAllowHTTP ?? false, instead: 'insecureAllowHTTP' }
  const clients = issuer.allowedDelegateClients
  const isAnyClient = clients?.includes('*') ?? false
  return [
    ...urlProblems(`${at}.issuerUrl`, issuer.issuerUrl, rules),
    ...urlProblems(`${at}.jwksUrl`, issuer.jwksUrl, rules),
    ...(issuer.allowPrivateIPs && issuer.jwksUrl === undefined
      ? [`${at}.allowPrivateIPs needs jwksUrl, so that no discovery leads to a private address`]
      : []),
    ...(isAnyClient && clients?.length !== 1 ? [`${at}.allowedDelegateClients: '*' must stand alone`] : []),
    ...(isAnyClient && issuer.allowMayAct ? [`${at}.allowedDelegateClients: '*' must not be used with allowMayAct: name the clients`] : []),
    ...(delegates(issuer) && clients === undefined
      ? [`${at}.allowedDelegateClients must name the clients that may exchange its tokens`]
      : []),
    ...(delegates(issuer) && issuer.expectedAudience === undefined
      ? [`${at}.expectedAudience must be set unless only jwtBearerGrant is used`]
      : []),
    ...grantProblems(`${at}.jwtBearerGrant`, issuer.jwtBearerGrant),
  ]
}

/** Whether its tokens are exchanged, and not only taken as a grant. */
function delegates({
  allowedActors,
  actorClaim,
  actorMatcher,
  allowedDelegateClients,
  allowMayAct,
  jwtBearerGrant,
}: TrustedIssuer): boolean {
  const wishes = [allowedActors, actorClaim, actorMatcher, allowedDelegateClients]
  return allowMayAct || jwtBearerGrant === undefined || wishes.some((wish) => wish !== undefined)
}

function grantProblems(at: string, grant: TrustedIssuer['jwtBearerGrant']): string[] {
  if (!grant) return []
  const age = tryParseDuration(grant.maxAssertionAge)
  const subjects = grant.subjectBindings.map(({ subject }) => subject)
  const resources = grant.subjectBindings.flatMap(({ allowedResources }) => allowedResources)
  const isRepeated = new Set(subjects).size < subjects.length
  return [
    ...(age !== undefined && age > 0 ? [] : [`${at}.maxAssertionAge must be a duration above 0, such as 5m`]),
    ...(subjects.length === 0 ? [`${at}.subjectBindings must name at least one subject`] : []),
    ...(isRepeated ? [`${at}.subjectBindings names a subject more than once: join its allowedResources`] : []),
    ...(subjects.some((subject) => subject.includes('*')) ? [`${at}.subjectBindings must name subjects without wildcards`] : []),
    ...(grant.acceptedAudiences ?? []).flatMap((url, index) => urlProblems(`${at}.acceptedAudiences[${index}]`, url, { allowHttp: true })),
    ...resources.flatMap((url) => urlProblems(`${at}.subjectBindings[].allowedResources`, url, { allowHttp: true })),
  ]
}
