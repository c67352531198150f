import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { PATIENCE_MS } from './packages/testkit/src/run/patience.ts'
import { LEFT_OUT } from './test/embedded/suites.ts'

/**
 * A test that asserts nothing cannot fail and proves no requirement. Concurrent tests take `expect` from their context. The default limit of
 * `expect.poll`, a second, is short on a busy machine.
 */
const EXPECT = { requireAssertions: true, poll: { timeout: PATIENCE_MS } }

/** For every project. */
const PATIENT_WAITS = 'test/patient-waits.ts'

/** Programs that tests start from their sources, and the official suite, are compiled once and not for every start: half of it is that. */
const COMPILE_CACHE = { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') }

/** One vitest call per stage (scripts/test.ts): all global set-ups of one call run before its first test. */
export default defineConfig({
  test: {
    // A file snapshot that is missing fails the test instead of being written; `vitest -u` writes it.
    update: 'none',
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/**/*.test.ts', 'apps/**/*.test.ts', 'test/**/*.test.ts', 'scripts/**/*.test.ts', 'bench/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**', '**/*.{cluster,clone,conformance,node,platform,record,services}.test.ts'],
          setupFiles: ['test/property-seed.ts', PATIENT_WAITS],
          isolate: false,
          pool: 'threads',
          // By default all processors but one, which on two is one file at a time. Much here is waiting.
          maxWorkers: Math.max(2, availableParallelism() - 1),
          // For a test that hangs, not for one on a busy machine.
          testTimeout: 300_000,
          hookTimeout: 300_000,
          // Looking again soon makes waits short.
          expect: { ...EXPECT, poll: { ...EXPECT.poll, interval: 10 } },
        },
      },
      {
        test: {
          name: 'cluster',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          env: COMPILE_CACHE,
          include: ['packages/**/*.cluster.test.ts', 'apps/**/*.cluster.test.ts', 'test/**/*.cluster.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          globalSetup: ['packages/testkit/src/cluster/global-setup.ts'],
          // Files work in namespaces of their own, and much here is waiting.
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // The same files on our own control plane.
        test: {
          name: 'embedded',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          env: COMPILE_CACHE,
          include: ['packages/**/*.cluster.test.ts', 'apps/**/*.cluster.test.ts', 'test/**/*.cluster.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**', ...Object.keys(LEFT_OUT)],
          globalSetup: ['test/embedded/embedded-setup.ts'],
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // Recordings of the real controllers: `npm run soak -- record` compares or writes them. Not a stage of `npm test`.
        test: {
          name: 'record',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          include: ['packages/**/*.record.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          globalSetup: ['packages/testkit/src/cluster/global-setup.ts'],
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'conformance',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          env: COMPILE_CACHE,
          include: ['packages/**/*.conformance.test.ts', 'apps/**/*.conformance.test.ts', 'test/**/*.conformance.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          // The official suite waits most of the time.
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        // Tests that need PostgreSQL, a git server, Schemathesis or another program of the system.
        test: {
          name: 'services',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          env: COMPILE_CACHE,
          include: ['packages/**/*.services.test.ts', 'apps/**/*.services.test.ts', 'test/**/*.services.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          globalSetup: ['packages/testkit/src/postgres/global-setup.ts', 'packages/testkit/src/redis/global-setup.ts'],
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'platform',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          include: ['packages/**/*.platform.test.ts', 'apps/**/*.platform.test.ts', 'test/**/*.platform.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'node',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          include: ['packages/**/*.node.test.ts', 'apps/**/*.node.test.ts', 'test/**/*.node.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          globalSetup: ['test/e2e/node-setup.ts'],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: 'clone',
          expect: EXPECT,
          setupFiles: [PATIENT_WAITS],
          include: ['test/**/*.clone.test.ts'],
          exclude: ['**/node_modules/**', '**/dist/**'],
          testTimeout: 900_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
})
