import type { CedarConfig } from '@thv/runconfig/policy-config'
import type { ClaimMapping } from '../access/principal.ts'

/** The part of a document that says which claims mean what. */
export function claimMappingOf(cedar: Omit<CedarConfig, 'policies' | 'entities_json'>): ClaimMapping {
  return {
    groupClaimName: cedar.group_claim_name,
    roleClaimName: cedar.role_claim_name,
    groupEntityType: cedar.group_entity_type,
    multiValuedClaims: cedar.multi_valued_claims,
  }
}
