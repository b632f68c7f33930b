-- The table otel_profiles for ClickHouse 26, in which queries of the page are fast and samples are small: that of contrib's exporter
-- `clickhouse` has neither hashes nor projections. It has all columns that the exporter writes. clickhouse.yaml may be running already.
--
--   clickhouse client --database default --multiquery < config/backends/clickhouse-table.sql
CREATE TABLE otel_profiles (
  Timestamp DateTime64(9) CODEC(Delta, ZSTD(1)),
  SampleType LowCardinality(String) CODEC(ZSTD(1)),
  SampleUnit LowCardinality(String) CODEC(ZSTD(1)),
  ServiceName LowCardinality(String) CODEC(ZSTD(1)),
  ResourceAttributes Map(LowCardinality(String), LowCardinality(String)) CODEC(ZSTD(1)),
  ScopeName LowCardinality(String) CODEC(ZSTD(1)),
  ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
  ProfileAttributes Map(LowCardinality(String), LowCardinality(String)) CODEC(ZSTD(1)),
  SampleAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
  Addresses Array(UInt64) CODEC(ZSTD(3)),
  FunctionNames Array(LowCardinality(String)) CODEC(ZSTD(3)),
  FileNames Array(LowCardinality(String)) CODEC(ZSTD(3)),
  LineNumbers Array(Int32) CODEC(ZSTD(3)),
  MappingFileNames Array(LowCardinality(String)) CODEC(ZSTD(3)),
  Values Array(Int64) CODEC(ZSTD(1)),
  TimestampsUnixNano Array(UInt64) CODEC(ZSTD(1)),
  DurationNano UInt64 CODEC(ZSTD(1)),
  Period Int64 CODEC(ZSTD(1)),
  PeriodType LowCardinality(String) CODEC(ZSTD(1)),
  PeriodUnit LowCardinality(String) CODEC(ZSTD(1)),
  TraceId String CODEC(ZSTD(1)),
  SpanId String CODEC(ZSTD(1)),
  -- What the exporter also writes, and nothing needs: it is not stored.
  ProfileId String EPHEMERAL,
  StackHash UInt64 EPHEMERAL,
  -- By these names the page finds what it would otherwise compute for each row.
  ProfileName LowCardinality(String) MATERIALIZED ProfileAttributes['pprof.scope.profile_name'] CODEC(ZSTD(1)),
  SeriesId FixedString(16) MATERIALIZED sipHash128(ServiceName, mapSort(ResourceAttributes),
    mapSort(mapFilter((k, v) -> NOT startsWith(k, 'pprof.profile.'), ProfileAttributes))) CODEC(ZSTD(1)),
  StackId FixedString(16) MATERIALIZED sipHash128(FunctionNames, FileNames, LineNumbers, Addresses, MappingFileNames) CODEC(ZSTD(1)),
  INDEX trace TraceId TYPE bloom_filter(0.001),
  -- A row for each profile, series and stack of a part of the table.
  PROJECTION profiles (
    SELECT ServiceName, ProfileName, SampleType, SampleUnit, PeriodType, PeriodUnit, SeriesId, Timestamp, max(DurationNano), max(Period),
      sum(if(empty(Values), toInt64(length(TimestampsUnixNano)), arraySum(Values))), sum(greatest(length(TimestampsUnixNano), 1)),
      min(arrayMin(TimestampsUnixNano)), max(arrayMax(TimestampsUnixNano)), max(notEmpty(SampleAttributes)), max(notEmpty(TraceId))
    GROUP BY ServiceName, ProfileName, SampleType, SampleUnit, PeriodType, PeriodUnit, SeriesId, Timestamp
  ),
  -- What is summed of whole hours: a row for each hour, series and stack.
  PROJECTION hours (
    SELECT ServiceName, ProfileName, SampleType, SampleUnit, PeriodType, PeriodUnit, toStartOfHour(Timestamp, 'UTC'), SeriesId, StackId,
      sum(if(empty(Values), toInt64(length(TimestampsUnixNano)), arraySum(Values))), sum(greatest(length(TimestampsUnixNano), 1))
    GROUP BY ServiceName, ProfileName, SampleType, SampleUnit, PeriodType, PeriodUnit, toStartOfHour(Timestamp, 'UTC'), SeriesId, StackId
  ),
  PROJECTION series (
    SELECT ServiceName, toDate(Timestamp), SeriesId, any(ResourceAttributes), any(ProfileAttributes)
    GROUP BY ServiceName, toDate(Timestamp), SeriesId
  ),
  -- The first of each list: for lists, ClickHouse's any takes eight times as long.
  PROJECTION stacks (
    SELECT ServiceName, toDate(Timestamp), StackId, groupArray(1)(FunctionNames), groupArray(1)(FileNames), groupArray(1)(LineNumbers),
      groupArray(1)(Addresses), groupArray(1)(MappingFileNames)
    GROUP BY ServiceName, toDate(Timestamp), StackId
  )
) ENGINE = MergeTree
PARTITION BY toDate(Timestamp)
ORDER BY (ServiceName, SampleType, toStartOfHour(Timestamp), StackId, SeriesId, Timestamp)
TTL toDateTime(Timestamp) + INTERVAL 14 DAY
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1;
