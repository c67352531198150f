/* For the test of traces: what throws is loaded later, so it is in a part of the bundle. */
await import('./throwing.ts')
