import type { Json } from '@thv/kube-schema/kind-schema'
import { objectKey } from '../../store/stored-object.ts'
import type { ApiCall } from '../http/request-context.ts'
import { textAt } from '../objects/served-kind.ts'

const LONGEST_WAIT_MS = 1_500

/**
 * A new namespace gets its default account a moment later, from a controller. A pod that comes in between waits for it, as on the real
 * server; it is refused as any other when the account does not come.
 */
export async function awaitDefaultAccount({ env: { store, clock }, path }: ApiCall, input: Json): Promise<void> {
  const namespace = path.namespace ?? ''
  const key = objectKey(namespace, 'default')
  const name = textAt(input, 'spec', 'serviceAccountName') || textAt(input, 'spec', 'serviceAccount')
  const isThere = () => store.get('serviceaccounts', key) !== undefined
  if ((name !== '' && name !== 'default') || isThere() || store.get('namespaces', namespace) === undefined) return
  await new Promise<void>((resolve) => {
    const end = () => {
      stop()
      timer.cancel()
      resolve()
    }
    const stop = store.onChange('serviceaccounts', () => {
      if (isThere()) end()
    })
    const timer = clock.setTimer(LONGEST_WAIT_MS, end)
  })
}
