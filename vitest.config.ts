import { defineConfig } from 'vitest/config'

/**
 * `unit` runs in this process and knows no real time. `process` starts children, kills them and fills disks: one file
 * after the other, because the machine is small. `types` compiles what must and must not compile.
 */
export default defineConfig({
  // The examples import `tidemark` by name, as their readers do; tests run them on the sources.
  resolve: { tsconfigPaths: true },
  test: {
    reporters: ['default'],
    setupFiles: ['tests/support/seed.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['tests/**/*.test.ts'],
          exclude: ['tests/**/*.process.test.ts'],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'process',
          include: ['tests/**/*.process.test.ts'],
          fileParallelism: false,
          testTimeout: 300_000,
          hookTimeout: 120_000,
        },
      },
      {
        // The coordinator's suite once more, over the durable ledger: whatever holds in memory must hold on disk.
        extends: true,
        test: {
          name: 'sqlite',
          include: ['tests/coordinator/**/*.test.ts'],
          exclude: ['tests/**/*.process.test.ts'],
          env: { TIDEMARK_TEST_LEDGER: 'sqlite' },
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'types',
          include: [],
          typecheck: { enabled: true, only: true, include: ['tests/types/**/*.test-d.ts'] },
        },
      },
    ],
  },
})
