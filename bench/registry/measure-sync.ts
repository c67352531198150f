import type { Figure } from '../figure.ts'
import type { RegistrySubject } from './registry-subject.ts'

/** How long a source that did not change, and one of which 1 % changed, keeps the registry busy; and how long its event loop. */
export async function measureSync(options: { registry: RegistrySubject; count: number; about: string }): Promise<Figure[]> {
  const { registry, count, about } = options
  const unchanged = await registry.syncUnchanged()
  await registry.stallMs()
  const changed = await registry.change(Math.ceil(count / 100))
  const stall = await registry.stallMs()
  const aim = { of: 'difference' as const, limit: 50 }
  return [
    { name: `sync, unchanged, ${about}`, unit: 'ms', value: unchanged, baseline: 0 },
    { name: `sync, 1 % changed, until served, ${about}`, unit: 'ms', value: changed, baseline: unchanged },
    { name: `longest stall meanwhile, ${about}`, unit: 'ms', value: stall, baseline: 0, ...(count === 100_000 && { aim }) },
  ]
}
