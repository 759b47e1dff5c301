// Runs in a throw-away folder that has Esper 8: detects two-event rules and tells how long it took.
//
//     java -cp 'lib/*:.' PeerEsper warm|files plain|quick QUERY FACTS.csv OUT.csv ROUNDS THRESHOLD...
//
// Place:   started by peers.py; knows nothing of dotr. One line of JSON on standard output.
// Method:  facts are lines `kind,room,value,second`; one statement a threshold. OUT gets a line a match:
//          `threshold's place,second,room,second of the reading,value`. The runtime is without its timer and
//          keeps no order between threads, for there is one. Processor time is that of the whole Java
//          machine, its compiler and collector too.
//          `plain`  events are maps, matches come to listeners: how Esper's documentation begins.
//          `quick`  events are classes of their own, matches come to subscribers with typed parameters: what
//                   the chapter on performance advises.
//          `warm`   facts in memory, rounds in one machine, each with a runtime and a deployment of its own;
//                   matches are counted. One more round writes them and is not measured.
//          `files`  once, from file to file, for who measures the process from outside.
//          Queries. `unique`: the last reading of each room in a window of that name; `table`: in a table of
//          Esper's; `each`: every reading in a window by time. All compare times, too, for a window of
//          Esper's is open at its end (a reading 300 s old is out) and `unique` does not forget by time.
//          `stddev`, `median`: of the room's readings in a window by time, at each smoke; smoke is in the
//          window, too, without a value, so that it moves the window on. `length`: the average of the room's
//          last ten readings, kept in a table. OUT gets `threshold's place,second,room,value` of these.

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

public final class PeerEsper {
  static final int WITHIN = 300;
  static final String SELECT = "select s.stamp as stamp, s.room as room, h.stamp as since, h.val as val ";
  static final String CLOSED = " where h.room = s.room and s.stamp - h.stamp <= " + WITHIN + ";\n";

  public abstract static class Fact {
    private final String room;
    private final long stamp;

    Fact(String room, long stamp) {
      this.room = room;
      this.stamp = stamp;
    }

    public String getRoom() {
      return room;
    }

    public long getStamp() {
      return stamp;
    }
  }

  public static final class Smoke extends Fact {
    public Smoke(String room, long stamp) {
      super(room, stamp);
    }
  }

  public static final class Hot extends Fact {
    private final int val;

    public Hot(String room, int val, long stamp) {
      super(room, stamp);
      this.val = val;
    }

    public int getVal() {
      return val;
    }
  }

  /** A reading, or smoke, which has no value. */
  public static final class Reading extends Fact {
    private final Integer val;

    public Reading(String room, Integer val, long stamp) {
      super(room, stamp);
      this.val = val;
    }

    public Integer getVal() {
      return val;
    }

    public boolean isSmoke() {
      return val == null;
    }
  }

  static final int HOT = 0;
  static final int SMOKE = 1;
  static final int READING = 2;

  /** An event as it is sent. */
  record Sent(int kind, Object event) {}

  /** Counts matches, and writes them where there is something to write to. */
  public static final class Matches {
    private final int place;
    private final BufferedWriter out;
    long count;

    Matches(int place, BufferedWriter out) {
      this.place = place;
      this.out = out;
    }

    public void update(long stamp, String room, long since, int val) {
      count++;
      if (out != null) {
        try {
          out.write(place + "," + stamp + "," + room + "," + since + "," + val + "\n");
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
      }
    }

    public void total(long stamp, String room, Double value) {
      if (value == null) {
        return;
      }
      count++;
      if (value.isNaN()) { // the root of a sum of squares that its rounding has made negative
        value = 0.0;
      }
      if (out != null) {
        try {
          out.write(place + "," + stamp + "," + room + "," + value + "\n");
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
      }
    }

    void listen(EventBean[] matches, boolean totals) {
      for (EventBean one : matches) {
        if (totals) {
          total((Long) one.get("stamp"), (String) one.get("room"), (Double) one.get("total"));
          continue;
        }
        update((Long) one.get("stamp"), (String) one.get("room"), (Long) one.get("since"),
            (Integer) one.get("val"));
      }
    }
  }

  static boolean ofReadings(String query) {
    return query.equals("stddev") || query.equals("median");
  }

  static boolean ofTotals(String query) {
    return ofReadings(query) || query.equals("length");
  }

  static String statements(String query, List<Integer> thresholds) {
    StringBuilder text = new StringBuilder();
    for (int place = 0; place < thresholds.size(); place++) {
      String hot = "Hot(val > " + thresholds.get(place) + ")", last = "Last" + place;
      String name = "@name('rule" + place + "') ";
      String join = name + SELECT + "from Smoke as s unidirectional, " + hot;
      text.append(switch (query) {
        case "stddev", "median" -> name + "select stamp, room, " + query + "(val) as total from Reading"
            + "#ext_timed(stamp * 1000, " + WITHIN + " sec 1 msec) group by room having last(smoke);\n";
        case "length" -> "create table Totals" + place + "(room string primary key, total avg(int));\n"
            + "into table Totals" + place + " select avg(val) as total from Hot#groupwin(room)#length(10)"
            + " group by room;\n" + name + "on Smoke as s select s.stamp as stamp, s.room as room, "
            + "t.total as total from Totals" + place + " as t where t.room = s.room;\n";
        case "unique" -> join + "#unique(room) as h" + CLOSED;
        case "each" -> join + "#ext_timed(stamp * 1000, " + WITHIN + " sec 1 msec) as h" + CLOSED;
        case "table" -> "create table " + last + "(room string primary key, stamp long, val int);\n"
            + "on " + hot + " as e merge " + last + " as l where l.room = e.room\n"
            + "when matched then update set l.stamp = e.stamp, l.val = e.val\n"
            + "when not matched then insert select e.room as room, e.stamp as stamp, e.val as val;\n"
            + name + "on Smoke as s " + SELECT + "from " + last + " as h" + CLOSED;
        default -> throw new IllegalArgumentException(query);
      });
    }
    return text.toString();
  }

  /** A runtime with the statements deployed; takes facts. */
  static final class Deployed {
    private final EventSender[] senders = new EventSender[3];
    private final List<Matches> matches = new ArrayList<>();

    Deployed(Configuration configuration, EPCompiled compiled, boolean plain, boolean totals,
        BufferedWriter out) throws Exception {
      EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
      runtime.initialize();
      EPDeployment made = runtime.getDeploymentService().deploy(compiled);
      for (EPStatement statement : made.getStatements()) {
        if (statement.getName().startsWith("rule")) {
          Matches found = new Matches(Integer.parseInt(statement.getName().substring(4)), out);
          matches.add(found);
          if (plain) {
            statement.addListener((some, gone, which, where) -> found.listen(some, totals));
          } else {
            statement.setSubscriber(found, totals ? "total" : "update");
          }
        }
      }
      senders[HOT] = runtime.getEventService().getEventSender("Hot");
      senders[SMOKE] = runtime.getEventService().getEventSender("Smoke");
      senders[READING] = runtime.getEventService().getEventSender("Reading");
    }

    void take(Sent sent) {
      senders[sent.kind].sendEvent(sent.event);
    }

    long found() {
      return matches.stream().mapToLong(one -> one.count).sum();
    }
  }

  /** kind,room,value,second: an event. */
  static Sent event(String line, boolean plain, boolean readings) {
    int room = line.indexOf(','), value = line.indexOf(',', room + 1), second = line.indexOf(',', value + 1);
    boolean smoke = line.charAt(0) == 'S';
    String where = line.substring(room + 1, value);
    int val = smoke ? 0 : Integer.parseInt(line, value + 1, second, 10);
    long stamp = Long.parseLong(line, second + 1, line.length(), 10);
    int kind = readings ? READING : smoke ? SMOKE : HOT;
    if (plain) {
      Map<String, Object> event = new HashMap<>();
      event.put("room", where);
      event.put("stamp", stamp);
      if (!smoke) {
        event.put("val", val);
      }
      if (readings) {
        event.put("smoke", smoke);
      }
      return new Sent(kind, event);
    }
    if (readings) {
      return new Sent(kind, new Reading(where, smoke ? null : (Integer) val, stamp));
    }
    return new Sent(kind, smoke ? new Smoke(where, stamp) : new Hot(where, val, stamp));
  }

  static Configuration configuration(boolean plain) {
    Configuration made = new Configuration();
    if (plain) {
      Map<String, Object> smoke = Map.of("room", String.class, "stamp", long.class);
      made.getCommon().addEventType("Smoke", smoke);
      made.getCommon().addEventType("Hot", Map.of("room", String.class, "stamp", long.class, "val", int.class));
      made.getCommon().addEventType("Reading", Map.of("room", String.class, "stamp", long.class,
          "val", Integer.class, "smoke", boolean.class));
    } else {
      made.getCommon().addEventType(Reading.class);
      made.getCommon().addEventType(Smoke.class);
      made.getCommon().addEventType(Hot.class);
    }
    made.getCompiler().getByteCode().setAllowSubscriber(true);
    made.getRuntime().getThreading().setInternalTimerEnabled(false);
    made.getRuntime().getThreading().setListenerDispatchPreserveOrder(false);
    made.getRuntime().getThreading().setInsertIntoDispatchPreserveOrder(false);
    return made;
  }

  static double cpu() {
    var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    return system.getProcessCpuTime() / 1e9;
  }

  static double own() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() / 1e9;
  }

  public static void main(String[] given) throws Exception {
    boolean files = given[0].equals("files"), plain = given[1].equals("plain");
    boolean totals = ofTotals(given[2]), readings = ofReadings(given[2]);
    Path facts = Path.of(given[3]), written = Path.of(given[4]);
    int rounds = Integer.parseInt(given[5]);
    List<Integer> thresholds = new ArrayList<>();
    for (int place = 6; place < given.length; place++) {
      thresholds.add(Integer.parseInt(given[place]));
    }
    Configuration configuration = configuration(plain);
    EPCompiled compiled = EPCompilerProvider.getCompiler()
        .compile(statements(given[2], thresholds), new CompilerArguments(configuration));
    List<String> seconds = new ArrayList<>(), alone = new ArrayList<>();
    long found = 0;
    if (files) {
      try (BufferedReader in = Files.newBufferedReader(facts);
          BufferedWriter out = Files.newBufferedWriter(written)) {
        Deployed deployed = new Deployed(configuration, compiled, plain, totals, out);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          deployed.take(event(line, plain, readings));
        }
        found = deployed.found();
      }
    } else {
      List<Sent> events = new ArrayList<>();
      for (String line : Files.readAllLines(facts)) {
        events.add(event(line, plain, readings));
      }
      for (int round = 0; round <= rounds; round++) {
        try (BufferedWriter out = round < rounds ? null : Files.newBufferedWriter(written)) {
          Deployed deployed = new Deployed(configuration, compiled, plain, totals, out);
          double start = cpu(), began = own();
          for (Sent sent : events) {
            deployed.take(sent);
          }
          if (round < rounds) {
            alone.add(String.format(java.util.Locale.ROOT, "%.3f", own() - began));
            seconds.add(String.format(java.util.Locale.ROOT, "%.3f", cpu() - start));
          }
          found = deployed.found();
        }
      }
    }
    System.out.println("{\"matches\": " + found + ", \"seconds\": [" + String.join(", ", seconds)
        + "], \"alone\": [" + String.join(", ", alone) + "]}");
  }
}
