import type { FetchContext } from './registry-handler.ts'

/** The work is done once in an attempt, by the first caller; all get its one result. */
export function oncePerAttempt<T>({ memo }: FetchContext, key: string, work: () => Promise<T>): Promise<T> {
  const known = memo.get(key) as Promise<T> | undefined
  const result = known ?? work()
  memo.set(key, result)
  return result
}
