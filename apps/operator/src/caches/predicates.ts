import { deletionStarted, generationChanged, or, type Predicate } from '@thv/kube'
import { API_GROUP } from '@thv/resources/schema/kind-definition'

/** Ignores status updates, which the controllers themselves write. */
export const specChanged: Predicate = or(generationChanged, deletionStarted)

/** For `KindCache.owned`: the owner is a custom resource of this kind. */
export const ownedBy = (ownerKind: string) => ({ group: API_GROUP, ownerKind })
