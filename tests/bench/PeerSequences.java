// Runs in a throw-away folder that has Esper 8: match_recognize, and how long it takes.
//
//     java -cp 'lib/*:.' PeerSequences warm|files QUERY FACTS.csv OUT.csv ROUNDS
//
// Place:   started by peers_sequences.py; knows nothing of dotr. One line of JSON on standard output.
// Method:  facts are lines `kind,user,price,time`, events are of a class of their own, matches come to a
//          subscriber: what Esper's chapter on performance advises. OUT gets a line a match: `user,n,began`.
//          `warm`   facts in memory, rounds in one machine, each with a runtime and a deployment of its own;
//                   matches are counted. One more round writes them and is not measured. Processor time is
//                   that of the whole Java machine, its compiler and collector too.
//          `files`  once, from file to file, for who measures the process from outside.

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.common.client.EventSender;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public final class PeerSequences {
  public static final class Row {
    private final String kind;
    private final String user;
    private final int price;
    private final long stamp;

    Row(String kind, String user, int price, long stamp) {
      this.kind = kind;
      this.user = user;
      this.price = price;
      this.stamp = stamp;
    }

    public String getKind() {
      return kind;
    }

    public String getUser() {
      return user;
    }

    public int getPrice() {
      return price;
    }

    public long getStamp() {
      return stamp;
    }
  }

  public static final class Matches {
    private final BufferedWriter out;
    long count;

    Matches(BufferedWriter out) {
      this.out = out;
    }

    public void update(String user, Long n, Long began) {
      count++;
      if (out != null) {
        try {
          out.write(user + "," + n + "," + began + "\n");
        } catch (IOException error) {
          throw new UncheckedIOException(error);
        }
      }
    }
  }

  static Row row(String line) {
    String[] part = line.split(",");
    return new Row(part[0], part[1].intern(), Integer.parseInt(part[2]), Long.parseLong(part[3]));
  }

  static EventSender sender(Configuration configuration, EPCompiled compiled, Matches matches)
      throws Exception {
    EPRuntime runtime = EPRuntimeProvider.getDefaultRuntime(configuration);
    runtime.initialize();
    EPStatement statement = runtime.getDeploymentService().deploy(compiled).getStatements()[0];
    statement.setSubscriber(matches);
    return runtime.getEventService().getEventSender("Row");
  }

  static String statement(String query) {
    String brute = "measures S.user as user, count(F.stamp) as n, F[0].stamp as began pattern (F{5,} S) "
        + "define F as F.kind = 'Failure', S as S.kind = 'Success'";
    String shape = "measures A.user as user, cast(last(D.price), long) as n, A.stamp as began "
        + "pattern (A D+ U U) define D as D.price < prev(D.price, 1), U as U.price > prev(U.price, 1)";
    return "@name('rule') select user, n, began from Row match_recognize (partition by user "
        + (query.equals("brute force") ? brute : shape) + ")";
  }

  static long processorTime() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  public static void main(String[] given) throws Exception {
    Path facts = Path.of(given[2]), written = Path.of(given[3]);
    Configuration configuration = new Configuration();
    configuration.getCommon().addEventType("Row", Row.class);
    configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
    configuration.getCompiler().getByteCode().setAllowSubscriber(true);
    EPCompiled compiled = EPCompilerProvider.getCompiler()
        .compile(statement(given[1]), new CompilerArguments(configuration));
    List<String> seconds = new ArrayList<>();
    Matches matches = null;
    if (given[0].equals("files")) {
      try (BufferedReader in = Files.newBufferedReader(facts);
          BufferedWriter out = Files.newBufferedWriter(written)) {
        matches = new Matches(out);
        EventSender sender = sender(configuration, compiled, matches);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          sender.sendEvent(row(line));
        }
      }
    } else {
      List<Row> rows = new ArrayList<>();
      for (String line : Files.readAllLines(facts)) {
        rows.add(row(line));
      }
      int rounds = Integer.parseInt(given[4]);
      for (int round = 0; round <= rounds; round++) {
        try (BufferedWriter out = round < rounds ? null : Files.newBufferedWriter(written)) {
          matches = new Matches(out);
          EventSender sender = sender(configuration, compiled, matches);
          System.gc();
          long start = processorTime();
          for (Row row : rows) {
            sender.sendEvent(row);
          }
          if (round < rounds) {
            seconds.add(Double.toString((processorTime() - start) / 1e9));
          }
        }
      }
    }
    System.out.println(
        "{\"cpu_s\": [" + String.join(", ", seconds) + "], \"matches\": " + matches.count + "}");
  }
}
